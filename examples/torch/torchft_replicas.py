# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small network in replicas of torchft, which may come and go, with sparse averages between them. Start the lighthouse,
and each replica with a name of its own:

torchft_lighthouse --min_replicas 2 --bind [::]:29510
TORCHFT_LIGHTHOUSE=http://localhost:29510 torchrun --standalone examples/torch/torchft_replicas.py NAME [STEPS]"""
import sys
import zlib

import oktopk_torch.torchft
import torch
from torch import nn
from torchft import Manager, Optimizer, ProcessGroupGloo

if __name__ == "__main__":
    name, steps = sys.argv[1], int([*sys.argv, 300][2])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1))
    adam = torch.optim.AdamW(model.parameters(), lr=2e-3)

    def load(saved):
        model.load_state_dict(saved["model"])
        adam.load_state_dict(saved["adam"])
    manager = Manager(ProcessGroupGloo(), load, lambda: {"model": model.state_dict(), "adam": adam.state_dict()},
                      min_replica_size=1, replica_id=name)
    average = oktopk_torch.torchft.average_gradients(manager, model, "ok_topk(density=0.02, format=packed)")
    optimizer = Optimizer(manager, adam)
    while manager.current_step() < steps:
        step = manager.current_step()
        inputs = torch.randn(128, 20, generator=torch.Generator().manual_seed(zlib.crc32(f"{name} {step}".encode())))
        optimizer.zero_grad()  # begins a quorum
        loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
        loss.backward()
        average()
        optimizer.step()  # where all replicas have the averages
        if step % 50 == 0:
            print(f"step {step}: {manager.num_participants()} replicas, loss {loss.item():.4f}", flush=True)
    manager.shutdown(wait=False)
