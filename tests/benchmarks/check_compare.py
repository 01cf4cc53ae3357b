# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs `benchmarks/run.py compare` on small input and checks its figures, from outside.

How near updates are to the true top k, oktopk_bench computes, and test_reference.cpp checks."""

import math
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import pytest
from conftest import ROOT, VERSION, read_rows, run
from gradients import crowded, full_of_ties, table_of, write_floats, write_inputs

SCHEMES = ["ok_topk", "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k", "dense",
           "dense_rabenseifner", "dense_bfloat16", "ring_chunked"]
TEXTBOOK = ["ring", "ring_chunked", "ring_pipelined", "halving_doubling", "recursive_doubling"]
COLUMNS = ["algorithm", "ranks", "length", "k", "words_sent", "words_are_a_floor",
           "lower_bound_ratio", "messages", "selection_seconds", "communication_seconds", "seconds",
           "speedup_over_dense", "output_density", "xi", "captured", "captured_by_top_k", "spread"]


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


def check_marks(said, table):
    """Exactly the schemes slower than dense are marked, and the words that are not counted."""
    assert len({len(line) for line in said.splitlines() if line.startswith("|")}) == 1
    lines = table_of(said)
    assert list(lines) == sorted(table, key=lambda scheme: float(table[scheme]["seconds"]))
    assert re.findall(r"^\| \*\*(.*?)\*\*", said, re.M) == ["ok_topk"]
    spreads = {scheme: float(row["spread"]) for scheme, row in table.items()}
    assert all(f"{scheme} {100 * spread:.0f} %" in " ".join(said.split())
               for scheme, spread in spreads.items() if spread > 0.2)
    for scheme, row in table.items():
        # 0.99 x and less, as printed
        slower = scheme != "dense" and float(row["speedup_over_dense"]) < 0.995
        assert ("!" in lines[scheme]["vs dense"]) == slower
        assert ("*" in lines[scheme]["words sent"]) == (scheme == "dense")
        assert ("~" in lines[scheme]["time, ms"]) == (spreads[scheme] > 0.2)
        # Of an update of everything no ratio to k.
        if float(row["output_density"]) == 1:
            assert lines[scheme]["/ least"] == "-"
        else:
            assert float(lines[scheme]["/ least"]) == near(float(row["lower_bound_ratio"]), absolute=0.006)
        milliseconds = float(lines[scheme]["time, ms"].rstrip(" ~").replace(",", ""))
        assert milliseconds == near(1e3 * float(row["seconds"]), 1e-3, 6e-5)
        speedup = float(table["dense"]["seconds"]) / float(row["seconds"])
        assert float(row["speedup_over_dense"]) == near(speedup, 1e-4)


@pytest.mark.parametrize("kind, ranks, length, density, rate", [
    (full_of_ties, 3, 1500, 0.05, None),
    (crowded, 2, 2000, 0.01, "0.1kbit"),  # selection takes less than 1 % of that on a busy machine, too
])
def test_figures(tables, tmp_path, kind, ranks, length, density, rate):
    _, patterns = write_inputs(tmp_path, kind, ranks, length, 2, ranks + length)
    network = ["--rate", rate, "--latency", 10000] if rate else []
    said, table, steps = tables("--ranks", ranks, "--input", patterns, "--density", density, *network)
    assert list(table) == SCHEMES == list(steps)
    k = max(1, round(length * density))
    for scheme, row in table.items():
        check_row(row, steps[scheme], ranks, length, k)
        if rate:
            wire = [max(float(step["words_sent_max"]), float(step["words_received_max"])) * 0.32
                    + int(step["messages_sent_max"]) * 1e-2 for step in steps[scheme]]
            mean = math.fsum(wire) / len(wire)
            assert 0 <= float(row["seconds"]) - mean < 0.01 * mean
    check_marks(said, table)
    said = " ".join(said.split())
    assert ("and its words and messages on links of 0.1 kbit/s, 10000 us a message." in said) == bool(rate)
    assert "The times are a forecast" in said and "synthetic" not in said
    fastest = min((row for row in table.values() if row["algorithm"].startswith(("ok", "paper", "topk", "g"))),
                  key=lambda row: float(row["seconds"]))["algorithm"]
    assert f"of the gradients' sum arrives at once with {fastest};" in said


def test_a_scheme_with_a_density_of_its_own_is_measured_by_it(tables):
    said, table, steps = tables("--ranks", 4, "--length", 20000, "--steps", 2, "--density", 0.01, "--algorithm",
                                "topk_a, topk_a(k=2000), ok_topk(density=0.1), dense")
    for scheme, k in {"topk_a": 200, "topk_a(k=2000)": 2000, "ok_topk(density=0.1)": 2000, "dense": 200}.items():
        check_row(table[scheme], steps[scheme], 4, 20000, k)
    shares = {scheme: float(row["captured_by_top_k"]) for scheme, row in table.items()}
    assert shares["topk_a"] == shares["dense"] < shares["topk_a(k=2000)"] == shares["ok_topk(density=0.1)"]
    said = " ".join(said.split())
    assert "k = 200 and 2,000" in said and "Schemes differ in k: each has its own." in said
    assert f"{shares['dense']:.4f} for k = 200 and {shares['topk_a(k=2000)']:.4f} for k = 2,000." in said


def test_loser(tables):
    """Where everything is selected, pairs of index and value are twice the words of dense."""
    said, table, _ = tables("--ranks", 2, "--length", 2000, "--density", 1, "--rate", "1kbit",
                            "--algorithm", "dense,topk_a", "--steps", 2)
    assert float(table["topk_a"]["speedup_over_dense"]) == near(0.5, 0.01)
    assert "!: slower than dense, 1 of 1 schemes" in said
    assert "Dense wins: dense takes" in said and "The times are a forecast: " in said
    assert float(table["topk_a"]["xi"]) == near(0)
    assert float(table["topk_a"]["captured"]) == near(1)


def test_all_schemes(tables, program):
    _, table, _ = tables("--ranks", 2, "--length", 1000, "--steps", 1, "--algorithms=all")
    assert list(table) == re.findall(r"^(\w+):", run(program.path, "--list").stdout, re.M)


def test_launcher(tables, mpi_program, tmp_path):
    launcher = tmp_path / "launcher"  # rank 0 may run where /tmp is another one: it writes below --build
    launcher.write_text('#!/bin/sh\ncase "$*" in *" --csv $PWD/shared/"*) ;; *) echo "$*" >&2; exit 3;; esac\n'
                        f'exec {shlex.join([*mpi_program.launcher, "2"])} "$@"\n')
    launcher.chmod(0o700)
    said, table, steps = tables("--launcher", launcher, "--build", "shared",
                                "--length", 3000, "--steps", 2, "--step-ms", 1000)
    assert not list((tmp_path / "shared").glob("tmp*"))
    said = " ".join(said.split())
    assert "The times are measured, started by " in said and "forecast" not in said
    assert "A step of 1000 ms with dense becomes" in said and "The gradients are synthetic" in said
    assert list(table) == SCHEMES
    for scheme, row in table.items():
        check_row(row, steps[scheme], 2, 3000, 30)


def test_styles(drivers):
    """What the pictures are made of: one colour for a scheme, plain numbers, one unit."""
    pictures = drivers("pictures")
    styles = {name: pictures.style_of(name) for name in {*SCHEMES, *TEXTBOOK}}
    assert len(set(styles.values())) == len(styles)  # lines differ at least in marker or dashes
    sparse = [name for name in SCHEMES if not name.startswith(("dense", "ring"))]
    assert len({styles[name][0] for name in sparse}) == len(sparse)
    assert pictures.style_of("ring_chunked(codec=bfloat16)") == styles["ring_chunked"]
    assert [pictures.number(x) for x in (1739.8, 50.23, 3.1, 0.01234, 0)] == [
        "1\u2009740", "50.2", "3.10", "0.0123", "0"]
    assert [pictures.unit_for(times)[0] for times in ([2, 90], [0.9, 2], [2e-6, 1e-3])] == ["s", "ms", "\u00b5s"]


needs_matplotlib = pytest.mark.skipif(
    all(run(python, "-c", "import matplotlib").returncode for python in ("python3", "/usr/bin/python3")),
    reason="no matplotlib")


@needs_matplotlib
def test_kept_pictures(tmp_path):
    """All pictures that are kept can be drawn again, twice as fine as 800 pixels."""
    done = run("sh", ROOT / "benchmarks" / "redraw.sh", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    kept = {path.relative_to(ROOT) for path in (ROOT / "benchmarks").rglob("*.png")}
    drawn = {path.relative_to(tmp_path): path.read_bytes() for path in tmp_path.rglob("*.png")}
    assert set(drawn) == kept | {pathlib.Path(f"docs/pictures/{name}.png") for name in ("all_schemes", "loss")}
    assert {int.from_bytes(picture[16:20], "big") for picture in drawn.values()} == {1600}


@needs_matplotlib
def test_picture(compare, driver, tmp_path):
    done = compare("--ranks", 2, "--length", 3000, "--steps", 1, "--csv", "table.csv", "--plot", "a.png")
    assert done.returncode == 0, done.stderr
    # The same picture and table from the file.
    again = driver("show", "table.csv", "--plot", "b.png", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert re.findall(r"^\|.*", done.stdout, re.M) == re.findall(r"^\|.*", again.stdout, re.M)
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in ("a.png", "b.png"))


@pytest.mark.parametrize("path", [each for each in (ROOT / "benchmarks").glob("*/results/*.csv")
                                  if "rrw" not in each.read_text()], ids=lambda path: path.name)
def test_kept_results(driver, drivers, path):
    """Results that are kept have a table, with a line for each scheme, or the name of the command that has it."""
    done = driver("show", path)
    command = drivers("tables").command_of(read_rows(path))
    if command:
        assert done.returncode != 0 and done.stderr.endswith(f"run.py {command} --part show has its tables\n")
        return
    assert done.returncode == 0, done.stderr
    schemes = {row.get("algorithm") or row.get("format") or row["part"] for row in read_rows(path)}
    assert set(table_of(done.stdout)) == schemes
    assert max(map(len, done.stdout.splitlines())) <= 120 + max(0, max(map(len, schemes)) - 30)


def test_commas_in_names(driver, drivers, tmp_path):
    """Commas inside parentheses belong to a name, in a list of schemes and in a file."""
    name = "ok_topk(local_select=reused, tau=32)"
    assert drivers("arguments").names(f"dense, {name},ring") == ["dense", name, "ring"]
    (tmp_path / "scaling.csv").write_text(f'algorithm,ranks,milliseconds\n"{name}",32,1.5\n')
    assert f"| **{name}** | 1.50 |" in driver("show", tmp_path / "scaling.csv").stdout


@pytest.mark.parametrize("options, sentence", [
    (["--all", "--algorithm", "ok_topk"], "not allowed with argument --all"),
    (["--minutes", "1", "--iterations", "5"], "not allowed with argument --minutes"),
])
def test_refuses_options_of_training_that_contradict(driver, options, sentence):
    done = driver("torch", "--rate", "none", *options)
    assert done.returncode != 0 and sentence in done.stderr


def test_version(driver):
    assert driver("--version").stdout == f"run.py {VERSION}\n"


@pytest.mark.parametrize("arguments, expected", [
    (["--launcher", "no_such_launcher"], "no_such_launcher"),
    (["--length", "1000", "--algorithm", "ring_chunked(codec=gzip)"], '"gzip"'),
    (["--", "--k", "3"], "[--density,--k]"),
])
def test_refuses_what_the_program_refuses(compare, tmp_path, arguments, expected):
    done = compare("--csv", "table.csv", "--plot", "none", *arguments)
    assert done.returncode != 0
    assert expected in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


# --- before and while it builds -------------------------------------------------------------------


@pytest.fixture
def bare(driver, program, tmp_path):
    """Runs `compare` where cmake and apt-get only write down that they were called; "builds" by a copy."""
    folder, signs = tmp_path / "bin", tmp_path / "called"
    folder.mkdir()
    fakes = {"apt-get": "exit 1", "cmake": f"""
[ -z "${{CMAKE_FAILS-}}" ] || {{ echo a fault of the compiler; exit 1; }}
[ "$1" = --build ] || {{ echo "-- oktopk: format_bench does without streamvbyte"; exit 0; }}
sleep "${{CMAKE_SECONDS-0}}"
echo "[7/9] Linking"
mkdir -p "$2/benchmarks"
cp {program.path} "$2/benchmarks/oktopk_bench\""""}
    for name, text in fakes.items():
        (folder / name).write_text(f'#!/bin/sh\necho {name} "$@" >>{signs}\n{text}\n')
        (folder / name).chmod(0o755)

    def compare(*arguments, **variables):
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **variables}
        done = driver("compare", "--build", tmp_path / "out", *arguments, cwd=tmp_path, env=environment,
                      stdin=subprocess.DEVNULL)
        return done, signs.read_text().splitlines() if signs.exists() else []
    return compare


SMALL = ("--ranks", 2, "--length", 1000, "--steps", 1, "--algorithm", "dense, ok_topk", "--plot", "none")


@pytest.mark.parametrize("arguments, expected", [
    (["--input", "absent.{rank}.npy"], "there is no input file absent.0.npy\n"),
    (["--input", "g.{rank}.npy"], "no input file g.2.npy, but those of ranks 0 to 1: --ranks 2 takes them"),
    (["--ranks", "2", "--input", "g.{rank}.npy,h.{rank}.npy"], "there is no input file h.0.npy"),
    (["--ranks", "1", "--input", "folder.{rank}"], "folder.0 is no file that can be read"),
    (["--input", "g.npy"], "g.npy has no {rank} in it"),
    (["--length", "10", "--input", "x.{rank}"], "--input: not allowed with argument --length"),
    (["--algorithm", "dense, okk_topk"], 'there is no algorithm "okk_topk"; there are ok_topk, '),
    (["--algorithm", "ok_topk(tua=32)"], 'no algorithm has an option "tua"; there are ahead, '),
    (["--colour", "red"], "--colour"),
    (["--ranks", "0"], "--ranks"),
    (["--density", "2"], "--density"),
    (["--step-ms", "0"], "--step-ms"),
    (["--rate", "0gbit"], "--rate"),
    (["--latency", "5"], "--rate"),
    (["--rate", "1gbit", "--latency", "little"], "--latency"),
    (["--rate", "1gbit", "--mpi"], "--rate"),
    (["--launcher", "mpirun -n 2", "--ranks", "3"], "--launcher"),
    (["--rows", "absent/rows.csv"], "cannot write"),
    (["--plot", "picture.xyz"], "must end in one of"),
])
def test_what_is_wrong_is_said_before_anything_is_built(bare, tmp_path, arguments, expected):
    for rank in range(2):
        write_floats(tmp_path / f"g.{rank}.npy", [0.5])
    (tmp_path / "folder.0").mkdir()
    done, called = bare(*arguments)
    assert done.returncode != 0 and done.stderr.count("\n") == 1 and expected in done.stderr
    assert not called and not (tmp_path / "out").exists()


def test_names_are_those_of_the_program(program, drivers):
    """What the driver reads from the sources is what the program lists, and nothing that it takes is refused."""
    programs = drivers("programs")
    listed = run(program.path, "--list").stdout
    assert list(programs.catalogue()) == re.findall(r"^(\w+):", listed, re.M)
    options = set(re.findall(r"^ +(\w+)=", listed, re.M))
    assert len(options) > 10 and options <= programs.options_of_schemes()
    sparse = {name for name in programs.catalogue() if programs.kind_of_scheme(name) == "sparse"}
    assert sparse >= {"ok_topk", "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k"}
    assert sparse == set(re.findall(r"^(\w+):(?=.*\n(?:  .*\n)*? +density=)", listed, re.M))
    assert programs.kind_of_scheme("ring_chunked (codec=bfloat16)") == "coded"
    assert programs.kind_of_scheme("ring_chunk") is None


def test_a_build_that_is_up_to_date_is_silent(bare, tmp_path):
    done, called = bare(*SMALL)
    assert done.returncode == 0, done.stderr
    assert [line.split("] ")[1].split()[0] for line in done.stderr.splitlines()] == ["Measuring,", "Wrote"]
    # In a folder that no build of the whole project has for its own.
    assert (tmp_path / "out/run/benchmarks/benchmarks/oktopk_bench").is_file()
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"run", "compare"}
    assert not any(call.startswith("apt-get") for call in called)


def test_a_build_that_is_long_or_fails_says_so(bare):
    done, _ = bare(*SMALL, CMAKE_SECONDS="4")
    assert done.returncode == 0 and "Building oktopk_bench in " in done.stderr
    done, _ = bare(*SMALL, CMAKE_FAILS="yes")
    assert done.returncode != 0 and "a fault of the compiler" in done.stderr
    assert "Traceback" not in done.stderr and "|" not in done.stdout


@pytest.mark.parametrize("plot, status", [([], 0), (["--plot", "none"], 0), (["--plot", "a.png"], 1)])
def test_matplotlib_that_is_missing_stops_no_table(bare, tmp_path, plot, status):
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['matplotlib'] = None\n")
    done, called = bare(*SMALL[:-2], *plot, PYTHONPATH=str(tmp_path), OKTOPK_RUN="again")
    assert done.returncode == status, done.stderr
    assert "| **ok_topk** |" in done.stdout and (tmp_path / "out/compare/schemes.csv").is_file()
    assert ("No picture: matplotlib is not installed" in done.stderr) == (plot == [])
    assert ("--plot needs matplotlib" in done.stderr) == (status == 1)
    # Nobody has asked for a picture, so nothing is installed for one.
    assert status == 1 or not any(call.startswith("apt-get") for call in called)


@pytest.fixture
def programs(drivers, monkeypatch):
    module = drivers("programs")
    monkeypatch.setattr(module, "PATIENCE", 0.2)
    return module


def test_long_steps_say_that_they_are_under_way(programs, capfd):
    assert programs.run([sys.executable, "-c", "import time; time.sleep(1); print(3)"], "no", "Waiting") == "3\n"
    said = capfd.readouterr().err
    assert 2 <= said.count("] Waiting: still under way\n") <= 5
    programs.run(["sleep", "0.5"], "no")
    assert capfd.readouterr().err == ""  # of what says itself where it is


def test_what_is_under_way_ends_with_its_step(programs, capfd):
    with pytest.raises(ZeroDivisionError), programs.under_way(lambda: "Working", 0.01):
        time.sleep(0.1)
        raise ZeroDivisionError
    capfd.readouterr()
    time.sleep(0.5)
    assert capfd.readouterr().err == ""
