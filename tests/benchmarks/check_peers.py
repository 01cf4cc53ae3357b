# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what `run.py peers` trains next and what its tables say, on rows that are made up."""

import math
import sys
import types

import pytest
from conftest import ROOT, succeed
from gradients import table_of

sys.path.insert(0, str(ROOT / "benchmarks"))
from driver import peers  # noqa: E402  # pylint: disable=wrong-import-position

SEED_SPREAD = 0.01


def training(scheme, rate, seed=1, pace=1.0, workload="mlp"):
    """Rows of a training whose loss falls in a line, `pace` times as fast as that of ddp."""
    def row(at):
        loss = math.nan if pace is None else 2 - pace * at / peers.ITERATIONS + SEED_SPREAD * (seed - 2)
        return {"scheme": scheme, "ranks": 4, "workload": workload, "learning_rate": rate, "seed": seed,
                "iteration": at, "seconds": at, "words": 10 * at, "loss": loss, "test_loss": loss, "accuracy": 0.5,
                "parameters": 1000}
    return [row(at) for at in range(peers.EVERY, peers.ITERATIONS + 1, peers.EVERY)]


def wanted(rows, scheme="ddp"):
    """Learning rates and seeds that are to be trained next."""
    return [(job["learning_rate"], job["seed"]) for job in peers.next_trainings(peers.trainings(rows), "mlp", scheme)]


def test_grid_first_then_beyond_its_edge_then_seeds():
    assert wanted([]) == [(0.01, 1), (0.03, 1), (0.1, 1)]
    rows = [*training("ddp", 0.01), *training("ddp", 0.03, pace=1.2), *training("ddp", 0.1, pace=1.3)]
    assert wanted(rows) == [(0.3, 1)]
    rows += training("ddp", 0.3, pace=None)  # diverges
    assert wanted(rows) == [(0.1, 2), (0.1, 3)]
    rows += [*training("ddp", 0.1, 2), *training("ddp", 0.1, 3)]
    assert wanted(rows) == []
    assert wanted(rows, "fp16") == [(0.01, 1), (0.03, 1), (0.1, 1)]


def test_a_training_that_misses_the_loss_goes_on():
    rows = [row for seed in (1, 2, 3) for row in training("ddp", 0.03, seed)]
    rows += [row for scheme in ("ddp", "ok_topk") for rate in (0.01, 0.1) for row in training(scheme, rate, pace=0.5)]
    rows += [*training("ok_topk", 0.03, 1), *training("ok_topk", 0.03, 2, 0.6), *training("ok_topk", 0.03, 3, 0.6)]
    jobs = peers.next_trainings(peers.trainings(rows), "mlp", "ok_topk")
    assert [(job["seed"], job["iterations"], job["known"]) for job in jobs] == [(2, 480, 240), (3, 480, 240)]
    before = peers.score(peers.trainings(rows)["mlp", "ok_topk", 0.03, 2])
    rows += [{**row, "iteration": row["iteration"] + 240, "test_loss": row["test_loss"] - 0.6}
             for seed in (2, 3) for row in training("ok_topk", 0.03, seed, 0.6)]
    runs = peers.trainings(rows)
    assert peers.next_trainings(runs, "mlp", "ok_topk") == []
    # Losses after equal iterations stay those after 240; the loss of dense sums, 1.417, is reached behind them.
    assert peers.score(runs["mlp", "ok_topk", 0.03, 2]) == before
    assert 240 < peers.reached(runs["mlp", "ok_topk", 0.03, 2], peers.target_of(runs, "mlp")) < 280
    assert [peers.next_trainings(peers.trainings(rows[:24]), "mlp", "ddp")[0]["known"]] == [0]


@pytest.fixture
def files(tmp_path):
    """A folder with rows of ddp, of PowerSGD after a tenth of the iterations and of a scheme that is twice as fast."""
    schemes = {"ddp": 1, "powersgd(rank=1)": 1, "ok_topk": 2}
    peers.results.write(tmp_path / "peers_loss.csv", [
        row for scheme, pace in schemes.items() for rate in (0.01, 0.03, 0.1)
        for seed in ((1, 2, 3) if rate == 0.03 else (1,))
        for row in training(scheme, rate, seed, pace if rate == 0.03 else pace / 2)])
    peers.results.write(tmp_path / "peers_time.csv", [
        {"scheme": scheme, "ranks": 4, "workload": "mlp", "learning_rate": 0.01, "seed": 1, "round": turn,
         "step_seconds": seconds * (1 + turn), "words": words, "parameters": 1000, "rate": "1gbit"}
        for scheme, seconds, words in (("ddp", 0.5, 1000), ("powersgd(rank=1, start=2)", 0.05, 100),
                                       ("ok_topk", 0.1, 200)) for turn in range(3)])
    return tmp_path


@pytest.fixture
def shown(files):
    """The tables of these rows."""
    said = succeed(sys.executable, ROOT / "benchmarks" / "run.py", "peers", "--part", "show", "--results", files,
                   "--plot", "none", "--algorithm", "ddp, powersgd(rank=1), ok_topk")
    assert "1 Gbit/s: ok_topk 18.0 s; the fastest peer powersgd(rank=1) 37.6 s, 2.09 times as long." in said
    return table_of(said)


def test_steps_to_the_loss_of_dense(shown):
    # After two thirds of 240 iterations the mean of three evaluations of ddp is 2 - 140/240.
    ddp = shown["ddp"]
    assert (ddp["learning rate"], ddp["loss at the end"], ddp["right, %"]) == ("0.03", "1.083 \u00b1 0.010", "50.0")
    assert ddp["steps to 1.417"] == "160 \u00b1 2"
    assert shown["ok_topk"]["steps to 1.417"] == "90 \u00b1 1"


def test_powersgd_pays_for_its_dense_steps(shown):
    # Medians of three turns: 1, 0.1 and 0.2 s a step; 24 of 240 steps are those of ddp.
    assert shown["powersgd(rank=1)"]["words/step"] == "10"
    times = {scheme: (cells["1 Gbit/s: ms/step"], cells["s to 1.417"]) for scheme, cells in shown.items()}
    assert times == {"ddp": ("1000", "160.0"), "powersgd(rank=1)": ("100", f"{24 + 136 * 0.1:.1f}"),
                     "ok_topk": ("200", "18.0")}


def test_loss_against_time_at_one_rate(files, monkeypatch):
    pytest.importorskip("matplotlib")
    drawn, make = [], peers.pictures.figure_of
    monkeypatch.setattr(peers.pictures, "figure_of",
                        lambda *given, **options: drawn.append(make(*given, **options)) or drawn[0])
    peers.show(types.SimpleNamespace(results=files, workload=["mlp"], algorithm=["ddp", "powersgd(rank=1)", "ok_topk"],
                                     plot=files / "loss.png", rate="1gbit", part="show", ranks=4))
    panel, = drawn[0][0].axes
    assert (panel.get_title(), panel.get_xlabel(), panel.get_xscale()) == ("mlp", "seconds at 1 Gbit/s", "linear")
    # The seconds of 240 iterations, as in the tables: 1, 0.1 and 0.2 s a step; 24 of PowerSGD are those of ddp.
    ends = {line.get_label(): line.get_xdata()[-1] for line in panel.lines if line.get_label() in peers.SHOWN}
    assert ends == pytest.approx({"ddp": 240, "powersgd(rank=1)": 24 + 216 * 0.1, "ok_topk": 48})
    head = (files / "loss.png").read_bytes()[:26]
    assert (int.from_bytes(head[16:20], "big"), head[25]) == (1600, 3)  # twice 800 pixels; a palette, so that it is short


def test_packing_alone_and_another_order_of_terms_need_no_training():
    assert {each: peers.trained_as(each) for each in peers.SCHEMES if peers.trained_as(each) != each} == {
        "dense": "ddp", "topk_dsa": "topk_a",
        **{f"{each}(format=packed)": each for each in ("ok_topk", "topk_a", "gtopk")}}


def test_the_fastest_may_be_a_scheme_of_the_paper():
    assert peers.leader("1gbit", {"ddp": 6, "fp16": 4, "ok_topk": 3, "gtopk(format=packed)": 2}) == (
        "1 Gbit/s: gtopk(format=packed) 2.0 s; the fastest peer fp16 4.0 s, 2.00 times as long.")


def test_checks_leave_out_what_was_not_asked_for_or_measured(tmp_path, monkeypatch):
    trained = training("ddp", 0.1)
    rows = {"loss": trained, "check": [{**row, "rate": "1gbit", "scheme": scheme} for row in trained
                                       for scheme in ("ddp", "powersgd(rank=2)")]}
    given = types.SimpleNamespace(results=tmp_path, workload=["mlp"], algorithm=["ddp", "ok_topk", peers.CHECKED[2]])
    asked = []
    monkeypatch.setattr(peers, "kept", lambda _, part: rows.get(part, []))
    assert peers.checks(given) == ""
    rows["check"] = []
    monkeypatch.setattr(peers, "on_cluster", lambda *given: asked.extend(given[3]) or [])
    monkeypatch.setattr(peers.results, "write", lambda *_: None)
    peers.run_check(given, tmp_path)
    assert [job["scheme"] for job in asked] == ["ddp"]
