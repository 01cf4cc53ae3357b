# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small network without DDP: sparse averages of the gradients, or of the ways of H local steps (--local-steps H)."""
import argparse
import tempfile

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn


def train(rank, ranks, store, options):
    dist.init_process_group("gloo", init_method=f"file://{store}/store", rank=rank, world_size=ranks)
    torch.manual_seed(0)  # the same weights on all ranks
    model = nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1))
    common = {name: each.detach().clone() for name, each in model.named_parameters()}
    average = oktopk_torch.averager(None, options.scheme, residual_decay=0.95 if options.local_steps else 1.0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    torch.manual_seed(rank + 1)  # and other examples
    for step in range(options.steps + 1):
        inputs = torch.randn(256, 20)
        loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        if not options.local_steps:
            for name, each in model.named_parameters():
                average(each.grad, key=name)
        optimizer.step()
        if options.local_steps and step % options.local_steps == 0:
            for name, each in model.named_parameters():  # the way since the last time, as a gradient
                common[name] -= average(common[name] - each.detach(), key=name)
                each.data.copy_(common[name])
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, {average.words_sent() / (step + 1):.0f} words a step")
    if rank == 0:
        print(average.report())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", default="ok_topk(density=0.05, format=packed)")
    parser.add_argument("--local-steps", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=300)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (arguments.ranks, folder, arguments), arguments.ranks)
