# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what the tables of `run.py changing` say, on rows that are made up."""

import sys
import types

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
from driver import changing, results  # noqa: E402  # pylint: disable=wrong-import-position

SLOW = range(5, 9)  # iterations at the low rate


def course(seconds, switches=lambda at: 0, scheme="ok_topk", count=12):
    """Rows as a program writes them."""
    return [{"iteration": str(at), "seconds": str(seconds(at)), "loss": "1", "words": "100",
             "runs": f"{scheme}: 3 ms predicted, 4 measured" if ":" not in scheme else scheme,
             "switches": str(switches(at))} for at in range(1, count + 1)]


def training(scheme, fast, slow, accuracy=0.8, seed=1, switches=lambda at: 0, workload="vgg16"):
    """Rows of a training whose steps take so many seconds at either rate."""
    told = course(lambda at: slow if at in SLOW else fast, switches, scheme.partition("(")[0])
    return changing.rows_of((workload, scheme, seed), told, [(5, "100mbit"), (9, "1gbit")],
                            {"test_loss": "0.5", "accuracy": str(accuracy)})


def test_the_verdict_is_against_the_best_fixed_scheme():
    rows = [*training("automatic(recheck=8)", 1.0, 2.0, 0.79, switches=lambda at: at // 6),
            *training("ok_topk", 1.1, 2.0), *training("ring_pipelined", 0.9, 9.0)]
    of = changing.trainings(rows)
    assert changing.seconds_of(of["ok_topk"]) == pytest.approx(7 * 1.1 + 4 * 2)  # without the first iteration
    assert changing.step_at(of["ring_pipelined"], "100mbit") == 9
    text = changing.verdict(of)
    assert "0.955 of the time of ok_topk" in text and "(reached: at most 1.05)" in text
    assert "2 switches (reached" in text and "-1.00 points" in text
    slower = changing.trainings([*training("automatic", 1.3, 2.2, switches=lambda at: at // 2),
                                 *training("ok_topk", 1.1, 2.0)])
    assert "missed: at most 1.05" in changing.verdict(slower) and "6 switches (missed" in changing.verdict(slower)
    assert changing.verdict(changing.trainings(training("ok_topk", 1, 2))) == ""


def test_the_picture_and_the_tables_come_from_the_rows(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    given = types.SimpleNamespace(csv=tmp_path / "rows.csv", plot=tmp_path / "picture.png", workload=["vgg16"], ranks=4)
    results.write(given.csv, [*training("automatic", 1, 2), *training("ok_topk", 1, 2)])
    changing.show(given)
    said = capsys.readouterr().out
    assert "| automatic   |    15.0 |" in said and "1.000 of the time of ok_topk" in said
    assert given.plot.stat().st_size > 10000
