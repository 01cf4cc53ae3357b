#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_gloo_strided.sh: all_reduce over Gloo sums other elements than those of a strided tensor, without an error.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 1.13.1+dfsg-4
cat >"$scratch/strided.py" <<'EOF'
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing


def rank_of_two(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    numbers = torch.arange(6.0)
    dist.all_reduce(numbers[::2])  # 0, 2, 4
    if rank == 0:
        print(*(f"{each:g}" for each in numbers.tolist()), end="")


if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_of_two, (f"{sys.argv[1]}/store",), nprocs=2)
EOF
verdict "0 1 2 3 4 5 with every second number doubled: 0 1 4 3 8 5" "0 2 4 3 4 5" \
  "$(/usr/bin/python3 "$scratch/strided.py" "$scratch" 2>"$scratch/log")"
