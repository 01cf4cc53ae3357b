# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What oktopk_torch says where something is missing, and how its ranks find each other."""

import os
import sys

import pytest
from conftest import run, succeed

NO_TORCH = """
import sys
sys.modules["torch"] = None
import oktopk_torch
"""
OLD_TORCH = """
import sys, types
sys.modules["torch"] = types.SimpleNamespace(__version__="1.12.1+cu116")
import oktopk_torch
"""
USES = """
import oktopk_torch
"""


@pytest.mark.parametrize("program, engine, words", [
    (NO_TORCH, None, "ImportError: oktopk_torch needs PyTorch 1.13 or newer, and this Python has none: pip install torch"),
    (OLD_TORCH, None, "ImportError: oktopk_torch needs PyTorch 1.13 or newer, and this is 1.12.1+cu116"),
    (USES, "/nowhere/liboktopk_engine.so.1", "ImportError: oktopk_torch needs the engine of oktopk, liboktopk_engine.so.1"),
    (USES, "libc.so.6", "ImportError: libc.so.6 is not the engine of this oktopk_torch")])
def test_says_in_one_sentence_what_is_missing(program, engine, words):
    given = {**os.environ, **({"OKTOPK_ENGINE": engine} if engine else {})}
    ended = run(sys.executable, "-c", program, env=given)
    assert ended.returncode != 0 and ended.stderr.splitlines()[-1].startswith(words), ended.stderr


MEETS = """
import datetime, sys, tempfile
import torch, torch.distributed as dist
import oktopk_torch

def run(rank, ranks, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=40))
    mean = torch.full((8,), (ranks + 1) / 2)
    def works(group):
        return oktopk_torch.averager(group, "topk_a(density=1)")(torch.full((8,), 1.0 + rank), key="a").equal(mean)
    assert works(None) and works(dist.new_group())
    # A group that torch.distributed does not know, as that of a wrapper.
    store = dist.PrefixStore("beside", dist.distributed_c10d._get_default_store())
    gloo = dist.ProcessGroupGloo(store, rank, ranks, datetime.timedelta(seconds=40))
    if isinstance(gloo, dist.ProcessGroup):  # before torch 2
        assert works(gloo)
    else:
        kinds = (dist.ProcessGroup.Options("gloo"),) if hasattr(dist.ProcessGroup, "Options") else ()
        unknown = dist.ProcessGroup(store, rank, ranks, *kinds)
        unknown._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)
        assert works(unknown)
    late = dist.new_group(timeout=datetime.timedelta(seconds=2))
    if rank == 0:
        try:
            oktopk_torch.averager(late)
        except oktopk_torch.Error as error:
            assert "the other ranks of the group have not come within 0:00:02: a state, and an averager, is collective" in str(error)
        else:
            raise AssertionError("no Error came")
    dist.barrier()
    print("met")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(run, (2, folder), 2)
"""


def test_ranks_meet(tmp_path):
    """In a group of torch.distributed, and in one that it does not know; who waits for one that does not come is told so."""
    program = tmp_path / "meets.py"
    program.write_text(MEETS)
    assert succeed(sys.executable, program).count("met") == 2
