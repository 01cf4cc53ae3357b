# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs `benchmarks/run.py compare` on small input and checks its figures, from outside.

How near the updates are to the true top k is computed here anew from the dumps of the benchmark and
its input.
"""

import math
import pathlib
import random
import re
import shlex
import subprocess
from importlib import import_module

import pytest
from conftest import ROOT, VERSION, run
from gradients import (crowded, full_of_ties, heavy_tailed, numpy_file, read_dump, read_rows, top,
                       write_floats, write_inputs)

SCHEMES = ["ok_topk", "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k", "dense",
           "dense_rabenseifner", "dense_bfloat16", "ring_chunked"]
TEXTBOOK = ["ring", "ring_chunked", "ring_pipelined", "halving_doubling", "recursive_doubling"]
COLUMNS = ["algorithm", "ranks", "length", "k", "words_sent", "words_are_a_floor",
           "lower_bound_ratio", "messages", "selection_seconds", "communication_seconds", "seconds",
           "speedup_over_dense", "output_density", "xi", "captured", "captured_by_top_k", "spread"]

TIMES = {"selection_seconds", "communication_seconds", "seconds", "speedup_over_dense", "spread"}


@pytest.fixture
def compare(driver, program, tmp_path):
    """Runs the command in a folder of its own."""
    return lambda *arguments: driver("compare", "--bench", program.path, *arguments, cwd=tmp_path)


@pytest.fixture
def tables(compare, tmp_path):
    """What the command prints, and the rows of the table and of the steps."""
    def measure(*arguments):
        done = compare("--csv", "table.csv", "--rows", "rows.csv", "--plot", "none", *arguments)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        table = read_rows(tmp_path / "table.csv")
        assert list(table[0]) == COLUMNS
        steps = {}
        for row in read_rows(tmp_path / "rows.csv"):
            steps.setdefault(row["algorithm"], []).append(row)
        return done.stdout, {row["algorithm"]: row for row in table}, steps
    return measure


def near(value, relative=1e-6, absolute=1e-7):
    return pytest.approx(value, rel=relative, abs=absolute)


def norm(values):
    return math.sqrt(math.fsum(x * x for x in values))


def quality(accumulators, indices, values, k):
    """xi, the share captured and that of the true top k."""
    dense = [math.fsum(column) for column in zip(*accumulators)]
    update = dict(zip(indices, values))
    best = top({i: abs(x) for i, x in enumerate(dense)}, k)
    chosen = top({i: abs(x) for i, x in update.items()}, k)
    apart = {i: dense[i] for i in best}
    for i in chosen:
        apart[i] = apart.get(i, 0.0) - update[i]
    whole = norm(dense)
    missing = norm([x - update.get(i, 0.0) for i, x in enumerate(dense)])
    missing_best = norm([x for i, x in enumerate(dense) if i not in set(best)])
    return (norm(apart.values()) / whole, 1 - (missing / whole) ** 2,
            1 - (missing_best / whole) ** 2)


def check_row(row, steps, ranks, length, k):
    """The row of the table sums up the steps."""
    assert (int(row["ranks"]), int(row["length"]), int(row["k"])) == (ranks, length, k)
    words = max(float(step["words_sent_max"]) for step in steps)
    assert float(row["words_sent"]) == words
    assert float(row["lower_bound_ratio"]) == near(words / (2 * k * (ranks - 1) / ranks))
    assert int(row["messages"]) == max(int(step["messages_sent_max"]) for step in steps)
    for column in ("output_density", "xi", "captured"):
        mean = math.fsum(float(step[column]) for step in steps) / len(steps)
        assert float(row[column]) == near(mean)
    parts = float(row["selection_seconds"]) + float(row["communication_seconds"])
    assert parts == near(float(row["seconds"])) and parts > 0
    assert (row["words_are_a_floor"] == "1") == (row["algorithm"] == "dense")


def lines_of(said):
    """The cells of each scheme's line, in the order of the tables."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]]
             for line in said.splitlines() if line.startswith("|")]
    heads = [cells for cells, below in zip(lines, lines[1:]) if set(below[0]) == {"-"}]
    return {cells[0].strip("*"): cells for cells in lines if cells not in heads and set(cells[0]) != {"-"}}


def check_marks(said, table):
    """Exactly the schemes slower than dense are marked, and the words that are not counted."""
    assert len({len(line) for line in said.splitlines() if line.startswith("|")}) == 1
    lines = lines_of(said)
    assert list(lines) == sorted(table, key=lambda scheme: float(table[scheme]["seconds"]))
    for scheme, row in table.items():
        # 0.99 x and less, as printed
        slower = scheme != "dense" and float(row["speedup_over_dense"]) < 0.995
        assert ("!" in lines[scheme][6]) == slower
        assert ("*" in lines[scheme][1]) == (scheme == "dense")
        assert ("~" in lines[scheme][4]) == (float(row["spread"]) > 0.2)
        assert lines[scheme][0] == (f"**{scheme}**" if scheme == "ok_topk" else scheme)
        # Of an update of everything no ratio to k.
        if float(row["output_density"]) == 1:
            assert lines[scheme][2] == "-"
        else:
            assert float(lines[scheme][2]) == near(float(row["lower_bound_ratio"]), absolute=0.006)
        speedup = float(table["dense"]["seconds"]) / float(row["seconds"])
        assert float(row["speedup_over_dense"]) == near(speedup, 1e-4)


@pytest.mark.parametrize("kind, ranks, length, density, rate", [
    (heavy_tailed, 4, 3001, 0.02, None),
    (full_of_ties, 3, 1500, 0.05, None),
    (crowded, 2, 2000, 0.01, "1kbit"),
])
def test_figures(tables, tmp_path, kind, ranks, length, density, rate):
    accumulators, patterns = write_inputs(tmp_path, kind, ranks, length, 2, ranks + length)
    network = ["--rate", rate, "--latency", 1000] if rate else []
    said, table, steps = tables("--ranks", ranks, "--input", patterns, "--density", density,
                                *network, "--", "--dump", tmp_path / "dump")
    assert list(table) == SCHEMES == list(steps)
    k = max(1, round(length * density))
    for scheme, row in table.items():
        indices, values, _ = read_dump(tmp_path / "dump", scheme, 0)
        last = steps[scheme][-1]
        got = [float(last[column]) for column in ("xi", "captured", "captured_by_top_k")]
        assert got == near(quality(accumulators, indices, values, k)), scheme
        assert float(last["output_density"]) == near(len(indices) / length)
        check_row(row, steps[scheme], ranks, length, k)
        if rate:
            wire = [max(float(step["words_sent_max"]), float(step["words_received_max"])) * 0.032
                    + int(step["messages_sent_max"]) * 1e-3 for step in steps[scheme]]
            mean = math.fsum(wire) / len(wire)
            assert 0 <= float(row["seconds"]) - mean < 0.01 * mean
    check_marks(said, table)


def test_loser(tables):
    """Where everything is selected, pairs of index and value are twice the words of dense."""
    said, table, _ = tables("--ranks", 2, "--length", 2000, "--density", 1, "--rate", "1kbit",
                            "--algorithm", "dense,topk_a", "--steps", 2)
    assert float(table["topk_a"]["speedup_over_dense"]) == near(0.5, 0.01)
    assert "!: slower than dense, 1 of 1 schemes" in said
    assert float(table["topk_a"]["xi"]) == near(0)
    assert float(table["topk_a"]["captured"]) == near(1)


def test_all_schemes(tables):
    _, table, _ = tables("--ranks", 2, "--length", 1000, "--steps", 1, "--algorithms=all")
    assert set(table) == {*SCHEMES, *TEXTBOOK}


def test_codec(tables):
    """A coded scheme sends its share of the words."""
    ranks, length = 3, 200_000
    coded = "ring_chunked(codec=block_float, rate=8)"
    said, table, steps = tables("--ranks", ranks, "--length", length, "--steps", 2, "--algorithm",
                                f"dense, {coded}")
    assert list(table) == list(steps) == ["dense", coded]
    for (scheme, row), bits in zip(table.items(), (32, 8.25)):
        check_row(row, steps[scheme], ranks, length, length // 100)
        share = float(row["words_sent"]) / (2 * length * (ranks - 1) / ranks)
        assert share == pytest.approx(bits / 32, abs=0.005)
        assert (float(row["xi"]) < 1e-6) == (bits == 32)
        assert float(row["captured"]) > 0.999
    check_marks(said, table)


def test_launcher(tables, mpi_program):
    _, table, steps = tables("--launcher", shlex.join([*mpi_program.launcher, "2"]),
                             "--length", 3000, "--steps", 2)
    assert list(table) == SCHEMES
    for scheme, row in table.items():
        check_row(row, steps[scheme], 2, 3000, 30)


def test_styles(monkeypatch):
    """What the pictures are made of: one colour for a scheme, plain numbers, one unit."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    pictures = import_module("driver.pictures")
    styles = {name: pictures.style_of(name) for name in {*SCHEMES, *TEXTBOOK}}
    assert len(set(styles.values())) == len(styles)  # lines differ at least in marker or dashes
    sparse = [name for name in SCHEMES if not name.startswith(("dense", "ring"))]
    assert len({styles[name][0] for name in sparse}) == len(sparse)
    assert pictures.style_of("ok_topk(tau=32)") == styles["ok_topk"]
    assert pictures.style_of("ring_chunked(codec=bfloat16)") == styles["ring_chunked"]
    assert [pictures.number(x) for x in (1739.8, 50.23, 3.1, 0.01234, 0)] == [
        "1\u2009740", "50.2", "3.10", "0.0123", "0"]
    assert [pictures.unit_for(times)[0] for times in ([2, 90], [0.9, 2], [2e-6, 1e-3])] == [
        "s", "ms", "\u00b5s"]
    # Labels keep their distance and move no more than they need.
    assert pictures.apart([0.1, 0.5], 0.1) == [0.1, 0.5]
    assert pictures.apart([0.5, 0.1, 0.5], 0.1) == pytest.approx([0.45, 0.1, 0.55])


def has_matplotlib(python):
    return subprocess.run([python, "-c", "import matplotlib"], capture_output=True,
                          check=False).returncode == 0


needs_matplotlib = pytest.mark.skipif(
    not any(map(has_matplotlib, ("python3", "/usr/bin/python3"))), reason="no matplotlib")


@needs_matplotlib
def test_kept_pictures(tmp_path):
    """All pictures that are kept can be drawn again, twice as fine as 800 pixels."""
    done = run("sh", ROOT / "benchmarks" / "redraw.sh", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    kept = {path.relative_to(ROOT) for path in (ROOT / "benchmarks").rglob("*.png")}
    drawn = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.png")}
    assert set(drawn) == kept | {pathlib.Path("docs/pictures/all_schemes.png")}
    assert {int.from_bytes(picture[16:20], "big") for picture in drawn.values()} == {1600}


@needs_matplotlib
def test_picture(compare, driver, tmp_path):
    done = compare("--ranks", 2, "--length", 3000, "--steps", 1, "--csv", "table.csv",
                   "--plot", "a.png")
    assert done.returncode == 0, done.stderr
    # The same picture and table from the file.
    again = driver("show", "table.csv", "--plot", "b.png", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert re.findall(r"^\|.*", done.stdout, re.M) == re.findall(r"^\|.*", again.stdout, re.M)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.png", "b.png", "table.csv"]
    for name in ("a.png", "b.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("path", [each for each in (ROOT / "benchmarks").glob("*/results/*.csv")
                                  if "rrw" not in each.read_text()], ids=lambda path: path.name)
def test_kept_results(driver, path):
    """Results that are kept have a table, with a line for each scheme."""
    done = driver("show", path)
    assert done.returncode == 0, done.stderr
    schemes = {row.get("algorithm") or row.get("format") or row["part"] for row in read_rows(path)}
    assert set(lines_of(done.stdout)) == schemes
    assert max(map(len, done.stdout.splitlines())) <= 120 + max(0, max(map(len, schemes)) - 30)


def test_width_and_marks(driver, tmp_path):
    """The table of a large case fits into a terminal, the fastest first, with units."""
    spreads = {"dense": 0.05, "ok_topk": 0.19, "dense_rabenseifner": 0.35}
    rows = [",".join(COLUMNS)]
    for number, (scheme, spread) in enumerate(spreads.items()):
        seconds = 1.5 / (number % 3 + 1)
        words = 256_000_000 if "dense" in scheme else 8_012_840
        rows.append(f"{scheme},256,133547324,1335473,{words},{int(scheme == 'dense')},3.0083,12345,"
                    f"0.05,{seconds - 0.05},{seconds},{1.5 / seconds},{0.01 if number == 1 else 1},"
                    f"0.1234,0.5678,0.61,{spread}")
    (tmp_path / "table.csv").write_text("\n".join(rows) + "\n")
    said = driver("show", tmp_path / "table.csv").stdout
    lines = lines_of(said)
    assert list(lines) == ["dense_rabenseifner", "ok_topk", "dense"]
    assert lines["ok_topk"][:7] == ["**ok_topk**", "8,012,840", "3.01", "12345", "750.0", "50.00",
                                    "2.00 x"]
    assert lines["dense"][1:3] == ["256,000,000*", "-"]
    assert [name for name, cells in lines.items() if "~" in cells[4]] == ["dense_rabenseifner"]
    assert "(interquartile range over median: dense_rabenseifner 35 %)" in " ".join(said.split())
    assert "time, ms" in said and "select, ms" in said
    assert max(map(len, said.splitlines())) <= 120


def test_commas_in_names(driver, tmp_path, monkeypatch):
    """Commas inside parentheses belong to a name, in a list of schemes and in a file."""
    name = "ok_topk(local_select=reused, tau=32)"
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    assert import_module("driver.arguments").names(f"dense, {name},ring") == ["dense", name, "ring"]
    (tmp_path / "scaling.csv").write_text(f'algorithm,ranks,milliseconds\n"{name}",32,1.5\n')
    assert f"| **{name}** | 1.50 |" in driver("show", tmp_path / "scaling.csv").stdout


@pytest.mark.parametrize("arguments, expected", [
    (["--colour", "red"], "--colour"),
    (["--ranks"], "--ranks: expected one argument"),
    (["--csv"], "--csv: expected one argument"),
    (["--ranks", "0"], "--ranks"),
    (["--ranks", "two"], "--ranks"),
    (["--length", "-5"], "--length"),
    (["--length", "10", "--input", "x.{rank}"], "--length and --input"),
    (["--input", "absent.{rank}"], "there is no input file"),
    (["--density", "2"], "--density"),
    (["--algorithm", "dense,quick"], "quick"),
    (["--steps", "0"], "--steps"),
    (["--rate", "fast"], "--rate"),
    (["--rate", "0gbit"], "--rate"),
    (["--latency", "5"], "--rate"),
    (["--rate", "1gbit", "--latency", "little"], "--latency"),
    (["--rate", "1gbit", "--mpi"], "--rate"),
    (["--launcher", "mpirun -n 2", "--ranks", "3"], "--launcher"),
    (["--launcher", "no_such_launcher"], "no_such_launcher"),
    (["--rows", "absent/rows.csv"], "cannot write"),
    (["--plot", "absent/picture.png"], "cannot write"),
    (["--plot", "picture.xyz"], "must end in one of"),
    (["--length", "1000", "--algorithm", "ring_chunked(codec=gzip)"], '"gzip"'),
    (["--", "--k", "3"], "[--density,--k]"),
])
def test_refuses(compare, tmp_path, arguments, expected):
    done = compare("--csv", "table.csv", "--plot", "none", *arguments)
    assert done.returncode != 0
    assert expected in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_numpy_files(tables, tmp_path):
    """NumPy's files and raw ones of the same values have the same figures."""
    rng = random.Random(3)
    for rank in range(2):
        values = heavy_tailed(rng, 2000)
        (tmp_path / f"gradient.{rank}.npy").write_bytes(numpy_file(values, shape="(2, 1000)"))
        write_floats(tmp_path / f"gradient.{rank}.f32", values)
    figures = []
    for ending in ("npy", "f32"):
        _, table, _ = tables("--ranks", 2, "--input", tmp_path / f"gradient.{{rank}}.{ending}")
        figures.append([[row[name] for name in COLUMNS if name not in TIMES]
                        for row in table.values()])
    assert len(figures[0]) == len(SCHEMES) and figures[0] == figures[1]


def test_refuses_damaged_file(compare, tmp_path):
    for rank in range(2):
        whole = numpy_file([0.5, rank] * 100)
        (tmp_path / f"gradient.{rank}.npy").write_bytes(whole[:-1] if rank else whole)
    done = compare("--ranks", "2", "--input", "gradient.{rank}.npy", "--csv", "table.csv",
                   "--plot", "none")
    assert done.returncode != 0
    assert "gradient.1.npy is cut short" in done.stderr
    assert not (tmp_path / "table.csv").exists()


@pytest.mark.parametrize("options, sentence", [
    (["--all", "--algorithm", "ok_topk"], "--all and --algorithm both say what to train with"),
    (["--minutes", "1", "--iterations", "5"], "--iterations and --minutes both say how long to train"),
])
def test_refuses_options_of_training_that_contradict(driver, options, sentence):
    done = driver("torch", "--rate", "none", *options)
    assert done.returncode != 0 and sentence in done.stderr


def test_version(driver):
    assert driver("--version").stdout == f"run.py {VERSION}\n"
