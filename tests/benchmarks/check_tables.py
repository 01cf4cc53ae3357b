# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the tables that run.py makes of rows that are kept."""

import pytest
from conftest import ROOT, read_rows
from gradients import table_of

ROWS = ROOT / "benchmarks" / "torch" / "results" / "vgg16_1gbit.csv"


@pytest.fixture
def rows():
    """Of a training that is kept."""
    return read_rows(ROWS)


def test_training_says_when_the_accuracy_of_dense_is_reached(drivers, rows):
    second = drivers("tables").torch_training(rows).partition("Until 79.9 % are right:")[2]
    cells = {name: list(line.values())[1:] for name, line in table_of(second).items()}
    assert cells["topk_dsa"] == ["130", "8.11", "4.6", "1.48"]
    assert cells["dense"] == ["286", "37.49", "1.0", "3.28"]


AUTOMATIC = ROOT / "benchmarks" / "automatic" / "results"


@pytest.mark.parametrize("command, expected", [
    (["peers", "--results", ROWS.parent, "--plot", "none"],
     "0.1 |   0.433 \u00b1 0.010 |     85.1 |     66,946 |         192 \u00b1 24 |"),
    (["grid", "--results", AUTOMATIC, "--pictures", "."],
     "automatic: within 1.15 of the best fixed scheme on 90.0 % of the points."),
    (["changing", "--csv", AUTOMATIC / "changing.csv", "--plot", "none"],
     "automatic(recheck=8): 0.984 of the time of ok_topk(format=packed), the best fixed scheme (reached: at most 1.05)")])
def test_kept_rows_of_other_commands(driver, tmp_path, command, expected):
    """The figures that the pages have; benchmarks/redraw.sh draws the pictures."""
    done = driver(*command, "--part", "show", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and expected in done.stdout


@pytest.mark.parametrize("content, expected", [
    (b"\xff\xfe\x00", "no file of results"), (b"a,b\n1,2\n", "no file of results"),
    (ROWS.read_bytes()[:-9], "as long as")])
def test_what_is_no_file_of_results_is_refused(driver, tmp_path, content, expected):
    (tmp_path / "rows").write_bytes(content)
    done = driver("show", tmp_path / "rows")
    assert done.returncode != 0 and expected in done.stderr and "Traceback" not in done.stderr


# --- the answer of compare in words ---------------------------------------------------------------


@pytest.fixture
def answer(drivers):
    """What is said of schemes with these milliseconds, or (milliseconds, spread, captured)."""
    def say(schemes, step_ms=None, kind="", k=100):
        rows = []
        for name, figures in schemes.items():
            time, spread, captured = figures if isinstance(figures, tuple) else (figures, 0, 0.5)
            rows.append({"algorithm": name, "seconds": str(time / 1e3), "spread": str(spread), "k": str(k),
                         "length": "10000", "captured": str(captured),
                         "output_density": "1" if name.startswith(("dense", "ring", "strange")) else "0.02"})
        return " ".join(drivers("tables").answer(rows, step_ms, kind).split())
    return say


@pytest.mark.parametrize("schemes, step_ms, said, unsaid", [
    ({"dense": 27.5, "ok_topk": 12.3, "ring_chunked": 15.4, "topk_a": 20}, 100, [
        "Sparse wins: ok_topk takes 12.30 ms an iteration, 15.20 ms less than dense and 3.100 ms less than "
        "ring_chunked, the fastest dense scheme. A step of 100 ms with dense becomes 84.8 ms with ok_topk: 15.2 % "
        "shorter, where no communication hides", "At a density of 1 %, 50 % of the energy", "with ok_topk; the rest waits",
        "--density 0.02"], []),
    ({"ok_topk": 12.3, "dense": 6, "topk_a": 5, "ring_chunked(codec=bfloat16)": 3}, 20, [
        "Dense wins: ring_chunked(codec=bfloat16) takes 3.000 ms an iteration. topk_a, the fastest sparse scheme, "
        "takes 1.000 ms less than dense and 2.000 ms more than ring_chunked(codec=bfloat16). Keep a dense allreduce",
        "A step of 20 ms with dense becomes 19 ms with topk_a: 5.0 % shorter"], []),
    # Differences within what iterations differ by.
    ({"ok_topk": 5.0, "dense": 5.01}, 100, ["A tie: ", "no more than times differ"], ["wins"]),
    # One kind alone wins nothing.
    ({"ok_topk": 2}, None, ["ok_topk takes 2.000 ms an iteration. No dense scheme is among"], ["wins", "--step-ms"]),
])
def test_answer(answer, schemes, step_ms, said, unsaid):
    text = answer(schemes, step_ms, "Measured.")
    assert all(each in text for each in said) and not any(each in text for each in unsaid), text
    assert text.endswith(" Measured.")
