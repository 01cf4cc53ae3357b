#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_gloo_wait_limit.sh: a wait for one rank that exceeds its limit takes the messages of all others away.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 1.13.1+dfsg-4
cat >"$scratch/limit.py" <<'EOF'
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing


def outcome(call):
    try:
        call()
        return "well"
    except RuntimeError as caught:
        return "timed out" if "imed out" in str(caught) else str(caught)


def rank_of_three(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=3)
    number = torch.zeros(1)
    if rank == 2:
        dist.send(number, dst=0, tag=2)
    if rank == 0:
        late = dist.irecv(number, src=1, tag=1)  # which rank 1 has not sent
        first = outcome(lambda: late.wait(timedelta(seconds=1)))
        print(f"{first}; from rank 2: {outcome(lambda: dist.recv(number, src=2, tag=2))}", end="", flush=True)
    time.sleep(3)  # or a rank that has left would be the cause


if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_of_three, (f"{sys.argv[1]}/store",), nprocs=3)
EOF
verdict "timed out; from rank 2: well" "timed out; from rank 2: Application timeout caused pair closure" \
  "$(/usr/bin/python3 "$scratch/limit.py" "$scratch" 2>"$scratch/log")"
