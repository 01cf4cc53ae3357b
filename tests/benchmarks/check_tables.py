# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the tables that run.py makes of rows that are kept."""

import csv
import subprocess
import sys
from importlib import import_module

import pytest
from conftest import ROOT, succeed

ROWS = ROOT / "benchmarks" / "torch" / "results" / "vgg16_1gbit.csv"


def shown(file):
    """What run.py says of a file."""
    return succeed(sys.executable, ROOT / "benchmarks" / "run.py", "show", file)


def test_training_says_when_the_accuracy_of_dense_is_reached():
    second = shown(ROWS).partition("Until 79.9 % are right:")[2]
    lines = [[cell.strip() for cell in line.split("|")] for line in second.splitlines()]
    cells = {line[1]: line[2:6] for line in lines if len(line) > 6}
    assert cells["topk_dsa"] == ["130", "8.11", "4.6", "1.48"]
    assert cells["dense"] == ["286", "37.49", "1.0", "3.28"]


def test_training_without_dense_has_nothing_to_reach(tmp_path):
    lines = ROWS.read_text(encoding="ascii").splitlines(keepends=True)
    without = tmp_path / "without_dense.csv"
    without.write_text("".join(line for line in lines if not line.startswith("dense,")), encoding="ascii")
    assert "are right:" not in shown(without)


def test_a_scheme_that_never_reaches_it_has_no_time(tmp_path):
    lines = ROWS.read_text(encoding="ascii").splitlines(keepends=True)
    short = tmp_path / "short.csv"
    kept = [line for line in lines if not line.startswith("gtopk,") or line.split(",")[6] in ("26", "52")]
    short.write_text("".join(kept), encoding="ascii")
    line = next(line for line in shown(short).partition("are right:")[2].splitlines() if line.startswith("| gtopk"))
    assert [cell.strip() for cell in line.split("|")[2:6]] == ["-", "-", "-", "-"]


def test_what_is_no_file_of_results_is_refused(tmp_path):
    lines = ROWS.read_text(encoding="ascii").splitlines(keepends=True)
    for name, content, expected in (("binary", b"\xff\xfe\x00", "no file of results"),
                                    ("cut", ("".join(lines[:5]) + lines[5][:9]).encode(), "as long as")):
        (tmp_path / name).write_bytes(content)
        done = subprocess.run([sys.executable, ROOT / "benchmarks" / "run.py", "show", tmp_path / name],
                              capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert expected in done.stderr and "Traceback" not in done.stderr


def test_rows_that_say_how_much_was_tested(tmp_path):
    assert "of them a row" not in shown(ROWS)
    with ROWS.open(newline="", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "tested.csv").open("w", newline="", encoding="ascii") as file:
        writer = csv.DictWriter(file, [*rows[0], "tested"])
        writer.writeheader()
        writer.writerows({**row, "tested": 480 if number % 2 else 10000} for number, row in enumerate(rows))
    said = " ".join(shown(tmp_path / "tested.csv").split())
    assert "of the test data, 480 to 10,000 images or words of them a row." in said


# --- the answer of compare in words ---------------------------------------------------------------


@pytest.fixture
def answer(monkeypatch):
    """What is said of schemes with these milliseconds, or (milliseconds, spread, captured)."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    tables = import_module("driver.tables")

    def say(schemes, step_ms=None, kind="", k=100):
        rows = []
        for name, figures in schemes.items():
            time, spread, captured = figures if isinstance(figures, tuple) else (figures, 0, 0.5)
            rows.append({"algorithm": name, "seconds": str(time / 1e3), "spread": str(spread), "k": str(k),
                         "length": "10000", "captured": str(captured),
                         "output_density": "1" if name.startswith(("dense", "ring", "strange")) else "0.02"})
        return " ".join(tables.answer(rows, step_ms, kind).split())
    return say


def test_sparse_wins(answer):
    said = answer({"dense": 27.5, "ok_topk": 12.3, "ring_chunked": 15.4, "topk_a": 20}, 100, "Measured.")
    assert said.startswith("Sparse wins: ok_topk takes 12.30 ms an iteration, 15.20 ms less than dense and "
                           "3.100 ms less than ring_chunked, the fastest dense scheme. A step of 100 ms with "
                           "dense becomes 84.8 ms with ok_topk: 15.2 % shorter, where no communication hides")
    assert "At a density of 1 %, 50 % of the energy" in said and "with ok_topk; the rest waits" in said
    assert "--density 0.02" in said and said.endswith(" Measured.")


def test_the_winner_is_named_with_its_options_and_ok_topk_beside_it(answer):
    said = answer({"dense": 5, "topk_a": 2, "ok_topk(tau=32)": 3})
    assert said.startswith("Sparse wins: topk_a takes 2.000 ms an iteration, 3.000 ms less than dense, the "
                           "fastest dense scheme. ok_topk(tau=32) takes 3.000 ms an iteration. ")
    assert "--step-ms T" in said and "becomes" not in said


def test_dense_wins(answer):
    said = answer({"ok_topk": 12.3, "dense": 6, "topk_a": 5, "ring_chunked(codec=bfloat16)": 3}, 20)
    assert said.startswith("Dense wins: ring_chunked(codec=bfloat16) takes 3.000 ms an iteration. topk_a, the "
                           "fastest sparse scheme, takes 1.000 ms less than dense and 2.000 ms more than "
                           "ring_chunked(codec=bfloat16). Keep a dense allreduce")
    assert "A step of 20 ms with dense becomes 19 ms with topk_a: 5.0 % shorter" in said
    assert "becomes 22 ms with topk_a: 10.0 % longer" in answer({"dense": 3, "topk_a": 5}, 20)


@pytest.mark.parametrize("sparse, dense, is_tie", [
    (5.0, 5.0, True), (5.0, 5.01, True), (5.0, 5.2, False), (5.2, 5.0, False),
    ((5.0, 0.3, 0.5), (5.9, 0.3, 0.5), True), ((5.0, 0.3, 0.5), (7.0, 0.3, 0.5), False),
])
def test_a_tie_is_a_difference_within_what_iterations_differ(answer, sparse, dense, is_tie):
    said = answer({"ok_topk": sparse, "dense": dense}, 100)
    assert said.startswith("A tie: ") == is_tie
    assert ("no more than times differ" in said) == is_tie


def test_one_scheme_alone_wins_nothing(answer):
    for name, other in (("ok_topk", "dense"), ("dense", "sparse")):
        said = answer({name: 2})
        assert said.startswith(f"{name} takes 2.000 ms an iteration. No {other} scheme is among them")
        assert "wins" not in said and "--step-ms" not in said
        assert "--step-ms needs a dense scheme and a sparse one" in answer({name: 2}, 50)
    assert "topk_a takes 1.000 ms an iteration, the least of these. No dense" in answer({"ok_topk": 2, "topk_a": 1})


def test_without_the_dense_of_the_communicator(answer):
    said = answer({"ok_topk": 2, "ring_chunked": 3}, 10)
    assert "1.000 ms less than ring_chunked, the fastest dense scheme. dense, the communicator's own " in said
    assert "A step of 10 ms with ring_chunked becomes 9 ms with ok_topk: 10.0 % shorter" in said


def test_a_step_shorter_than_its_allreduce_is_no_step(answer):
    said = answer({"ok_topk": 2, "dense": 30}, 20)
    assert "A step of 20 ms cannot have dense in it, which takes 30.00 ms alone" in said
    assert "shorter" not in said


def test_what_captured_says_about_the_density(answer):
    assert "95 % of the energy" in answer({"ok_topk": (2, 0, 0.95), "dense": 3})
    assert "little waits" in answer({"ok_topk": (2, 0, 0.95), "dense": 3})
    assert "0 % of the energy" in answer({"ok_topk": (2, 0, -0.1), "dense": 3})
    said = answer({"ok_topk": (2, 0, 0.6), "dense": 3}, k=6000)
    assert "At a density of 60 %" in said and "--density" not in said  # there is no twice as much


def test_a_scheme_that_the_sources_do_not_have_is_dense_where_its_updates_are(answer):
    assert answer({"strange": 2, "ok_topk": 3}).startswith("Dense wins: strange takes")
    assert answer({"new_sparse": 2, "dense": 3}).startswith("Sparse wins: new_sparse takes")
