#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_fsdp2_all_reduce_hook.sh: whether FSDP2's set_requires_all_reduce(False), with which gradients add up before
# replicas sum them, holds back the hook that takes the place of that sum.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need_of_pypi torch==2.15.0
cat >"$scratch/hook.py" <<'EOF'
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing
from torch.distributed.fsdp import fully_shard


def rank_of_two(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    mesh = dist.init_device_mesh("cpu", (2, 1), mesh_dim_names=("replica", "shard"))
    said = []
    for has_hook in (False, True):
        model, calls = torch.nn.Linear(4, 4), []
        fully_shard(model, mesh=mesh["shard"] if has_hook else mesh)
        if has_hook:
            model.set_all_reduce_hook(calls.append)
        model.set_requires_all_reduce(False)
        model(torch.ones(2, 4)).sum().backward()
        said.append(f"{len(calls)} calls, {'no ' if model.weight.grad is None else ''}gradient")
    if rank == 0:
        print("; ".join(said), end="")


if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_of_two, (sys.argv[1],), nprocs=2)
EOF
verdict "without a hook, and with one: 0 calls, no gradient; 0 calls, no gradient" "0 calls, no gradient; 1 calls, gradient" \
  "$("$scratch/venv/bin/python3" "$scratch/hook.py" "$scratch" 2>"$scratch/log" | tail -n 1)"
