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


@pytest.mark.parametrize("program, ranks, steps, options", [
    (EXAMPLE, 2, 300, ["--optimizer", "sgd"]), (EXAMPLE, 3, 300, ["--optimizer", "adamw"]),
    (EXAMPLE, 4, 100, ["--optimizer", "sgd"]), (OWN_LOOP, 2, 300, ["--local-steps", 0]),
    (OWN_LOOP, 2, 300, ["--local-steps", 8])])
def test_example_trains(program, ranks, steps, options):
    said = succeed(sys.executable, program, "--ranks", ranks, "--steps", steps, *options)
    losses = [float(each) for each in re.findall(r"^step \d+: loss ([0-9.]+), \d+ words a step$", said, re.M)]
    assert len(losses) == steps // 50 + 1
    assert losses[-1] < 0.5 * losses[0], said
    assert program == EXAMPLE or "which is ok_topk: 512 of 10240 values" in said


def test_example_is_short():
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 40
