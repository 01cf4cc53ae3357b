# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small network on several processes with DDP, whose gradients go through a sparse allreduce."""
import argparse
import tempfile

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn

OPTIMIZERS = {"sgd": lambda p: torch.optim.SGD(p, lr=0.01), "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3)}


def train(rank, ranks, store, options):
    dist.init_process_group("gloo", init_method=f"file://{store}/store", rank=rank, world_size=ranks)
    torch.manual_seed(rank)
    ddp = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1)))
    state = oktopk_torch.attach(ddp, options.scheme, momentum=0.9 if options.optimizer == "sgd" else 0)
    optimizer = OPTIMIZERS[options.optimizer](ddp.parameters())
    for step in range(options.steps + 1):
        inputs = torch.randn(256, 20)
        loss = nn.functional.mse_loss(ddp(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, {state.words_sent() / (step + 1):.0f} words a step")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", default="ok_topk(density=0.02, format=packed)")
    parser.add_argument("--optimizer", choices=OPTIMIZERS, default="sgd")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (arguments.ranks, folder, arguments), arguments.ranks)
