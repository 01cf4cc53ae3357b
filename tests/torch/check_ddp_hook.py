# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with PyTorch's DistributedDataParallel and the hook of oktopk_torch, on several processes."""

import pathlib
import re
import sys

import pytest
from conftest import ROOT, succeed

CASES = pathlib.Path(__file__).with_name("ddp_cases.py")
EXAMPLE = ROOT / "examples" / "torch" / "ddp_hook.py"
OWN_LOOP = EXAMPLE.with_name("own_loop.py")


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_cases(ranks):
    assert "test_goes_on_to_the_bit " in succeed(sys.executable, CASES, ranks)


@pytest.mark.parametrize("optimizer, ranks, steps", [("sgd", 2, 300), ("adamw", 3, 300), ("sgd", 4, 100)])
def test_example_trains(optimizer, ranks, steps):
    said = succeed(sys.executable, EXAMPLE, "--optimizer", optimizer, "--ranks", ranks, "--steps", steps)
    losses = [float(each) for each in re.findall(r"^step \d+: loss ([0-9.]+), \d+ words a step$", said, re.M)]
    assert len(losses) == steps // 50 + 1
    assert losses[-1] < 0.5 * losses[0], said


@pytest.mark.parametrize("local_steps", [0, 8])
def test_example_without_ddp_trains(local_steps):
    said = succeed(sys.executable, OWN_LOOP, "--ranks", 2, "--local-steps", local_steps)
    losses = [float(each) for each in re.findall(r"^step \d+: loss ([0-9.]+), \d+ words a step$", said, re.M)]
    assert len(losses) == 7 and losses[-1] < 0.5 * losses[0], said
    assert "which is ok_topk: 512 of 10240 values" in said


def test_example_is_short():
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 40
