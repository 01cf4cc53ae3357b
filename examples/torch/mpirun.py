# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""mpirun -n 2 python3 examples/torch/mpirun.py [STEPS]: trains a small network with DDP and sparse gradients on the ranks that mpirun
of Open MPI, MPICH or Intel MPI starts. On several machines MASTER_ADDR is the address of that of rank 0, for all of them
(-x MASTER_ADDR=... of Open MPI, -genv MASTER_ADDR ... of the others), and MASTER_PORT a port that is free there."""
import os
import sys

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn


def of_launcher(*names):
    return os.environ[next((each for each in names if each in os.environ), names[0])]


if __name__ == "__main__":
    steps = int([*sys.argv, 300][1])
    os.environ["RANK"] = of_launcher("OMPI_COMM_WORLD_RANK", "PMI_RANK")
    os.environ["WORLD_SIZE"] = of_launcher("OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    ddp = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1)))
    oktopk_torch.attach(ddp, "ok_topk(density=0.02, format=packed)")
    optimizer = torch.optim.AdamW(ddp.parameters(), lr=2e-3)
    for step in range(steps):
        inputs = torch.randn(128, 20, generator=torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank()))
        loss = nn.functional.mse_loss(ddp(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
