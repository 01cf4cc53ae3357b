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


def test_pairs_of_options_on_three_ranks():
    pairs = "test_pairs_of_options_hold_for_200_steps"
    assert f"{pairs} " in succeed(sys.executable, CASES, 3, pairs)


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


AT_EXIT = """
namespace Kokkos { bool is_initialized() noexcept; }
struct holder { ~holder() { if (!Kokkos::is_initialized()) __builtin_abort(); } }; // as a view of Kokkos does
extern "C" void hold() { static holder one; }
"""
AVERAGES = """
import atexit, ctypes, os, re, signal, sys
import torch, torch.distributed as dist
import oktopk_torch
dist.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
average = oktopk_torch.averager(None, "topk_a(density=1)")
average(torch.ones(4), key="a")
"""
HOLDS = AVERAGES + """
if len(sys.argv) == 2:
    print(next(iter(re.findall(r"/\\S*kokkos\\S*core\\S*", open("/proc/self/maps").read())), ""))
else:
    ctypes.CDLL(sys.argv[2]).hold()
"""


def test_what_lives_until_exit_finds_kokkos_initialised(tmp_path):
    """A view that another library keeps as a static object, where the module was the first to initialise Kokkos."""
    program = tmp_path / "program.py"
    program.write_text(HOLDS)
    kokkos = succeed(sys.executable, program, tmp_path / "store").strip()
    if not kokkos:
        pytest.skip("Kokkos is no shared library here")
    (tmp_path / "other.cpp").write_text(AT_EXIT)
    succeed("c++", "-shared", "-fPIC", tmp_path / "other.cpp", kokkos, "-o", tmp_path / "other.so")
    succeed(sys.executable, program, tmp_path / "second", tmp_path / "other.so")


FORKS = AVERAGES + """
if child := os.fork():
    assert os.waitpid(child, 0)[1] == 0
    average(torch.ones(4), key="a")
    sys.exit()
signal.alarm(60)
for each in (average.residual_norm, oktopk_torch.averager, lambda: average(torch.ones(4), key="a")):
    try:
        each()
    except oktopk_torch.Error as error:
        assert "before this process was forked" in str(error)
    else:
        os._exit(1)
del average
atexit._run_exitfuncs()  # as multiprocessing from Python 3.13 on; at the end of a program Gloo would wait
os._exit(0)
"""


def test_a_process_that_was_forked_waits_for_nothing(tmp_path):
    """It has no thread that averages: its calls are errors, and it ends, as a worker of a data loader does."""
    program = tmp_path / "program.py"
    program.write_text(FORKS)
    succeed(sys.executable, program, tmp_path / "store")


def test_example_is_short():
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 40
