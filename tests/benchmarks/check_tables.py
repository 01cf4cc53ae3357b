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
    def said(of):
        return drivers("tables").torch_training(of)

    second = said(rows).partition("Until 79.9 % are right:")[2]
    cells = {name: list(line.values())[1:] for name, line in table_of(second).items()}
    assert cells["topk_dsa"] == ["130", "8.11", "4.6", "1.48"]
    assert cells["dense"] == ["286", "37.49", "1.0", "3.28"]
    short = [row for row in rows if row["algorithm"] != "gtopk" or row["iteration"] in ("26", "52")]
    never = table_of(said(short).partition("are right:")[2])["gtopk"]
    assert list(never.values())[1:] == ["-", "-", "-", "-"]
    assert "are right:" not in said([row for row in rows if row["algorithm"] != "dense"])


def test_rows_that_say_how_much_was_tested(drivers, rows):
    assert "of them a row" not in drivers("tables").torch_training(rows)
    tested = [{**row, "tested": 480 if number % 2 else 10000} for number, row in enumerate(rows)]
    said = " ".join(drivers("tables").torch_training(tested).split())
    assert "of the test data, 480 to 10,000 images or words of them a row." in said


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
    # The winner is named with its options, and ok_topk beside it.
    ({"dense": 5, "topk_a": 2, "ok_topk(tau=32)": 3}, None, [
        "Sparse wins: topk_a takes 2.000 ms an iteration, 3.000 ms less than dense, the fastest dense scheme. "
        "ok_topk(tau=32) takes 3.000 ms an iteration. ", "--step-ms T"], ["becomes"]),
    ({"ok_topk": 12.3, "dense": 6, "topk_a": 5, "ring_chunked(codec=bfloat16)": 3}, 20, [
        "Dense wins: ring_chunked(codec=bfloat16) takes 3.000 ms an iteration. topk_a, the fastest sparse scheme, "
        "takes 1.000 ms less than dense and 2.000 ms more than ring_chunked(codec=bfloat16). Keep a dense allreduce",
        "A step of 20 ms with dense becomes 19 ms with topk_a: 5.0 % shorter"], []),
    ({"dense": 3, "topk_a": 5}, 20, ["Dense wins", "becomes 22 ms with topk_a: 10.0 % longer"], []),
    # Differences within what iterations differ by.
    ({"ok_topk": 5.0, "dense": 5.01}, 100, ["A tie: ", "no more than times differ"], ["wins"]),
    ({"ok_topk": 5.0, "dense": 5.2}, 100, ["Sparse wins"], ["A tie"]),
    ({"ok_topk": 5.2, "dense": 5.0}, 100, ["Dense wins"], ["A tie"]),
    ({"ok_topk": (5.0, 0.3, 0.5), "dense": (5.9, 0.3, 0.5)}, 100, ["A tie: "], ["wins"]),
    ({"ok_topk": (5.0, 0.3, 0.5), "dense": (7.0, 0.3, 0.5)}, 100, ["Sparse wins"], ["A tie"]),
    # One kind alone wins nothing.
    ({"ok_topk": 2}, None, ["ok_topk takes 2.000 ms an iteration. No dense scheme is among"], ["wins", "--step-ms"]),
    ({"dense": 2}, 50, ["dense takes 2.000 ms an iteration. No sparse scheme is among them",
                        "--step-ms needs a dense scheme and a sparse one"], ["wins"]),
    ({"ok_topk": 2, "topk_a": 1}, None, ["topk_a takes 1.000 ms an iteration, the least of these. No dense"], []),
    # Without the dense of the communicator.
    ({"ok_topk": 2, "ring_chunked": 3}, 10, [
        "1.000 ms less than ring_chunked, the fastest dense scheme. dense, the communicator's own ",
        "A step of 10 ms with ring_chunked becomes 9 ms with ok_topk: 10.0 % shorter"], []),
    ({"ok_topk": 2, "dense": 30}, 20, ["A step of 20 ms cannot have dense in it, which takes 30.00 ms"], ["shorter"]),
    ({"ok_topk": (2, 0, 0.95), "dense": 3}, None, ["95 % of the energy", "little waits"], []),
    ({"ok_topk": (2, 0, -0.1), "dense": 3}, None, ["0 % of the energy"], []),
    # Schemes that the sources do not have: dense where their updates are.
    ({"strange": 2, "ok_topk": 3}, None, ["Dense wins: strange takes"], []),
    ({"new_sparse": 2, "dense": 3}, None, ["Sparse wins: new_sparse takes"], []),
])
def test_answer(answer, schemes, step_ms, said, unsaid):
    text = answer(schemes, step_ms, "Measured.")
    assert all(each in text for each in said) and not any(each in text for each in unsaid), text
    assert text.endswith(" Measured.")


def test_no_density_over_1_is_advised(answer):
    said = answer({"ok_topk": (2, 0, 0.6), "dense": 3}, k=6000)
    assert "At a density of 60 %" in said and "--density" not in said
