#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_ddp_hook_view.sh: DDP ignores offset and strides of the tensor that a communication hook gives back.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 1.13.1+dfsg-4
cat >"$scratch/hook.py" <<'EOF'
import sys

import torch
import torch.distributed as dist


def hook(_, bucket):
    """The gradients as they are: every second element of a tensor that has their negatives between them."""
    pairs = torch.stack([bucket.buffer(), -bucket.buffer()], dim=1).flatten()
    future = torch.futures.Future()
    future.set_result(pairs[::2])
    return future


dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=0, world_size=1)
model = torch.nn.Linear(4, 1, bias=False)
ddp = torch.nn.parallel.DistributedDataParallel(model)
ddp.register_comm_hook(None, hook)
ddp(torch.tensor([1.0, 2, 3, 4])).sum().backward()
print(*(f"{each:g}" for each in model.weight.grad.flatten().tolist()), end="")
EOF
verdict "gradients that a hook hands through as a strided view: 1 2 3 4, or an error" "1 -1 2 -2" \
  "$(/usr/bin/python3 "$scratch/hook.py" "$scratch" 2>"$scratch/log")"
