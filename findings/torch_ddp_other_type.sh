#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_ddp_other_type.sh: a DDP module that is turned to another type averages nothing any more, without a word.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 1.13.1+dfsg-4
cat >"$scratch/turned.py" <<'EOF'
import sys

import torch
import torch.distributed as dist


def run(rank, folder):
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1, 1, bias=False))
    said = []
    for kind in (torch.float32, torch.float64):
        ddp.to(kind)
        ddp.zero_grad(set_to_none=True)
        ddp(torch.full((1, 1), 1.0 + rank, dtype=kind)).sum().backward()  # the gradient is 1 or 2
        said.append(f"{ddp.module.weight.grad.item():g}")
    if rank == 0:
        print(*said, end="", flush=True)


if __name__ == "__main__":
    torch.multiprocessing.spawn(run, (sys.argv[1],), 2)
EOF
verdict "averages of 1 and 2 on rank 0, in float32 and after ddp.to(float64): 1.5 1.5, or an error" "1.5 1" \
  "$(/usr/bin/python3 "$scratch/turned.py" "$scratch" 2>"$scratch/log")"
