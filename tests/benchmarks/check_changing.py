# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what `run.py changing` trains next, when it changes the links, and what its tables say, on rows that are made
up."""

import pathlib
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


def test_only_missing_trainings_are_made():
    given = types.SimpleNamespace(seeds=2, workload=["vgg16", "bert"], algorithm=["ok_topk", "dense"])
    assert changing.missing(given, [])[:3] == [("vgg16", "ok_topk", 1), ("vgg16", "dense", 1), ("bert", "ok_topk", 1)]
    assert len(changing.missing(given, [])) == 8
    rest = changing.missing(given, training("ok_topk", 1, 2, seed=2))
    assert len(rest) == 7 and ("vgg16", "ok_topk", 2) not in rest


def test_the_links_change_after_thirds_of_the_iterations():
    assert changing.turns(120) == [(40, "100mbit"), (80, "1gbit")]
    assert changing.turns(117) == [(39, "100mbit"), (78, "1gbit")]
    changes = [(41, "100mbit"), (82, "1gbit")]
    assert [changing.rate_at(at, changes) for at in (1, 40, 41, 81, 82)] == ["1gbit", "1gbit", "100mbit", "100mbit",
                                                                           "1gbit"]


def write_course(path, rows):
    path.write_text("iteration\n" + "".join(f"{at}\n" for at in range(1, rows + 1)), encoding="utf-8")


def test_the_cluster_is_told_of_a_rate_when_the_program_has_come_so_far(tmp_path):
    file = tmp_path / "course"
    links = changing.Links(file, pathlib.Path(tmp_path), [(4, "100mbit"), (8, "1gbit")])
    links.start()
    write_course(file, 3)
    links.join(5 * changing.PATIENCE)
    assert not (tmp_path / "rate").exists()
    write_course(file, 5)
    for _ in range(200):
        if (tmp_path / "rate").exists():
            break
        links.join(changing.PATIENCE)
    assert (tmp_path / "rate").read_text("utf-8") == "100mbit\n"
    assert links.changes == []  # the links are not there yet
    write_course(file, 6)
    (tmp_path / "rate.now").write_text("100mbit\n", encoding="utf-8")
    for _ in range(200):
        if links.changes:
            break
        links.join(changing.PATIENCE)
    assert links.changes == [(7, "100mbit")]  # iteration 7 was under way
    links.ended.set()
    links.join(5)
    assert not links.is_alive() and len(links.changes) == 1


def test_rows_tell_the_choice_in_full_where_it_changes():
    told = course(lambda at: 1)
    told[6]["runs"] = "dense: 1 ms predicted"
    rows = changing.rows_of(("vgg16", "automatic", 1), told, [], {"test_loss": "0.5", "accuracy": "0.75"})
    assert [row["iteration"] for row in rows if row["explain"]] == ["1", "7", "8"]
    assert rows[6]["runs"] == "dense" and rows[6]["explain"] == "dense: 1 ms predicted"
    assert [row["accuracy"] for row in rows[-2:]] == ["", "0.75"]


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


def test_the_mean_of_seeds_counts():
    of = changing.trainings([*training("ok_topk", 1, 1, 0.8), *training("ok_topk", 3, 3, 0.6, seed=2)])
    assert changing.seconds_of(of["ok_topk"]) == pytest.approx(22)
    assert changing.accuracy_of(of["ok_topk"]) == pytest.approx(0.7)


def test_decisions_are_found_and_trials_are_none():
    told = course(lambda at: 1, lambda at: int(at >= 30), count=40)
    for at, row in enumerate(told, 1):
        row["runs"] = ("gtopk" if at < 10 else "ok_topk" if at < 30 else "dense") + ": 1 ms predicted"
    rows = changing.rows_of(("vgg16", "automatic", 1), told, [], {"accuracy": "1"})
    assert changing.choices(rows) == [(1, "ok_topk"), (30, "dense")]


def test_the_picture_and_the_tables_come_from_the_rows(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    given = types.SimpleNamespace(csv=tmp_path / "rows.csv", plot=tmp_path / "picture.png", workload=["vgg16"], ranks=4)
    results.write(given.csv, [*training("automatic", 1, 2), *training("ok_topk", 1, 2)])
    changing.show(given)
    said = capsys.readouterr().out
    assert "| automatic   |    15.0 |" in said and "1.000 of the time of ok_topk" in said
    assert given.plot.stat().st_size > 10000
