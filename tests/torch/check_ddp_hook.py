# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with PyTorch's DistributedDataParallel and the hook of oktopk_torch, on several processes."""

import pathlib
import re
import sys

import pytest
from conftest import ROOT, SECONDS, succeed

CASES = pathlib.Path(__file__).with_name("ddp_cases.py")
EXAMPLE = ROOT / "examples" / "torch" / "ddp_hook.py"
OWN_LOOP = EXAMPLE.with_name("own_loop.py")


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_cases(ranks):
    assert "test_goes_on_to_the_bit " in succeed(sys.executable, CASES, ranks)


@pytest.mark.parametrize("ranks", [2, 3])
def test_cases_of_directions(ranks):
    assert "test_what_does_not_fit_is_refused" in succeed(sys.executable, CASES.with_name("adam_cases.py"), ranks)


@pytest.mark.parametrize("ranks", [2, 3])
def test_cases_of_sparse_tensors(ranks):
    assert "test_what_is_not_for_tables_is_refused_by_name" in succeed(sys.executable, CASES.with_name("sparse_cases.py"), ranks)


def test_pairs_of_options_on_three_ranks():
    pairs = "test_pairs_of_options_hold_for_200_steps"
    assert f"{pairs} " in succeed(sys.executable, CASES, 3, pairs)


@pytest.mark.parametrize("ranks", [2, 3])
def test_cases_within_nodes(ranks):
    assert "test_what_is_no_node_is_refused" in succeed(sys.executable, CASES.with_name("node_cases.py"), 2, ranks, timeout=3 * SECONDS)


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


def test_example_of_adamw_trains_beside_dense_sums(tmp_path):
    text = tmp_path / "text"
    text.write_text(" ".join(chr(97 + i * i % 23) * (1 + i % 3) for i in range(20000)), encoding="ascii")
    said = succeed(sys.executable, EXAMPLE.with_name("adamw.py"), "--ranks", 2, "--steps", 60, "--text", text)
    losses = [float(each) for each in re.findall(r"^(?:dense|sparse).*: step \d+, loss ([0-9.]+), ", said, re.M)]
    assert len(losses) == 6 and losses[2] < 0.8 * losses[0] and losses[5] < 0.8 * losses[3], said
    assert re.search(r"^at the end: [0-9.]+ by dense sums in \d+ s, [0-9.]+ by sparse ones in \d+ s$", said, re.M), said


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


ENDS = """
import datetime, os, signal, sys
import torch, torch.distributed as dist, torch.multiprocessing
import oktopk_torch
from torch import nn


class Between(torch.autograd.Function):
    @staticmethod
    def forward(context, values):
        return values.clone()

    @staticmethod
    def backward(context, gradient):
        if Between.way == "raises":
            raise ValueError("of the program")
        if Between.way == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        return gradient


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(50, 300), nn.Linear(300, 1200)  # more than the first bucket of DDP has, in any release

    def forward(self, inputs):
        return self.second(Between.apply(self.first(inputs)))


def run(rank, store, way):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=4, timeout=datetime.timedelta(minutes=20))
    nodes = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    ddp = nn.parallel.DistributedDataParallel(Network(), bucket_cap_mb=0.05)
    state = oktopk_torch.attach(ddp, "ok_topk(density=0.1)", node_group=nodes[rank // 2])
    try:
        for step in range(8):
            Between.way = way if step == 4 and (way == "raises" or rank == 3) else ""
            ddp(torch.randn(8, 50)).square().mean().backward()
    except (oktopk_torch.Error, ValueError) as error:
        print(f"rank {rank} in step {step}: {error}".replace("\\n", " "), flush=True)


if __name__ == "__main__":
    ranks = [torch.multiprocessing.get_context("spawn").Process(target=run, args=(rank, *sys.argv[1:])) for rank in range(4)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    assert ranks[3].exitcode == {"dies": -signal.SIGKILL, "raises": 0}[sys.argv[2]]
"""


@pytest.mark.parametrize("way, ranks, words", [("dies", "012", "within the node: "), ("raises", "0123", "of the program")])
def test_a_pass_that_is_broken_off_within_nodes_ends_all_ranks(tmp_path, way, ranks, words):
    """Of a rank that dies the one beside it hears by the process group, those of the same share by the engine, and the last one from
    the others. A pass in which all ranks raise leaves nothing to wait for."""
    program = tmp_path / "program.py"
    program.write_text(ENDS)
    said = succeed(sys.executable, program, tmp_path / "store", way)
    assert sorted(re.findall(r"rank (\d) in step 4: ", said)) == list(ranks), said
    assert words in said, said
