# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small network with Accelerate and sparse gradients; goes on from the last checkpoint in FOLDER, where there is one.

torchrun --nproc_per_node 2 examples/torch/accelerate_loop.py FOLDER"""
import argparse
import pathlib

import oktopk_torch
import torch
from accelerate import Accelerator
from torch import nn

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=4)
    options = parser.parse_args()
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1))
    data = torch.utils.data.DataLoader(torch.randn(12800, 20), 128)
    model, optimizer, data = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01), data)
    state = oktopk_torch.attach(model, "ok_topk(density=0.02, format=packed)", momentum=0.9)
    accelerator.register_for_checkpointing(oktopk_torch.gathered(state))
    saved = sorted(options.folder.glob("epoch*"))
    if saved:
        accelerator.load_state(saved[-1])
    for epoch in range(len(saved), options.epochs):
        for step, inputs in enumerate(data):
            loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
            if step % 50 == 0:
                accelerator.print(f"step {epoch * len(data) + step}: loss {loss.item():.4f}")
        accelerator.save_state(options.folder / f"epoch{epoch}")
