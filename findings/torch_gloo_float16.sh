#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_gloo_float16.sh: which calls of Gloo's process group take float16 and bfloat16.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 2.14.1+dfsg-1
cat >"$scratch/float16.py" <<'EOF'
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing


def rank_of_two(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    said = []
    for name in ("all_reduce", "broadcast"):
        for kind in (torch.float32, torch.float16, torch.bfloat16):
            try:
                getattr(dist, name)(torch.ones(4, dtype=kind), *([0] if name == "broadcast" else []))
                said.append("yes")
            except RuntimeError as error:
                said.append(str(error).splitlines()[0])
    if rank == 0:
        print(", ".join(said), end="")


if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_of_two, (f"{sys.argv[1]}/store",), nprocs=2)
EOF
verdict "all_reduce and broadcast of float32, float16, bfloat16: yes, yes, yes, yes, yes, yes" \
  "yes, Invalid scalar type, Invalid scalar type, yes, Invalid scalar type, Invalid scalar type" \
  "$(/usr/bin/python3 "$scratch/float16.py" "$scratch" 2>"$scratch/log" | tail -n 1)"
