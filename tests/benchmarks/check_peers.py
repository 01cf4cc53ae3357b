# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks what the tables of `run.py peers` say, on rows that are made up."""

import math
import sys

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
