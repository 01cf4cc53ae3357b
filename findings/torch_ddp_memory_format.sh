#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_ddp_memory_format.sh: the first gradient of DDP has its values at other places where the module was turned
# to channels_last behind it.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need python3-torch 1.13.1+dfsg-4
cat >"$scratch/turned.py" <<'EOF'
import sys

import torch
import torch.distributed as dist

dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/store", rank=0, world_size=1)
torch.manual_seed(1)
conv = torch.nn.Conv2d(3, 4, 3)
ddp = torch.nn.parallel.DistributedDataParallel(conv)
ddp.to(memory_format=torch.channels_last)
inputs, wrong = torch.randn(2, 3, 8, 8), []
for step in range(3):
    right, = torch.autograd.grad(conv(inputs).square().sum(), [conv.weight])
    ddp.zero_grad(set_to_none=True)
    ddp(inputs).square().sum().backward()
    wrong.append("right" if torch.allclose(conv.weight.grad, right, rtol=1e-4, atol=1e-4) else "wrong")
print(*wrong, end="")
EOF
verdict "gradients of one rank, three steps: right right right" "wrong right right" \
  "$(/usr/bin/python3 "$scratch/turned.py" "$scratch" 2>"$scratch/log")"
