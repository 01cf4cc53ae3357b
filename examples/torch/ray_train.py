# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ray_train.py FOLDER [STEPS]: trains a network with Ray Train and sparse gradients; goes on from FOLDER, which all ranks see."""
import pathlib
import sys

import oktopk_torch
import torch
from ray.train import ScalingConfig, get_context
from ray.train.torch import TorchConfig, TorchTrainer, prepare_model
from torch import nn


def train(given):
    torch.manual_seed(0)
    model = prepare_model(nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1)))
    state = oktopk_torch.attach(model, "ok_topk(density=0.02, format=packed)")
    optimizer, first, saved = torch.optim.AdamW(model.parameters(), lr=2e-3), 0, given["folder"] / "weights"
    rank, ranks = get_context().get_world_rank(), get_context().get_world_size()
    if saved.exists():
        first, weights, moments = torch.load(saved)
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        state.load(given["folder"])
    for step in range(first, given["steps"]):
        inputs = torch.randn(128, 20, generator=torch.Generator().manual_seed(step * ranks + rank))
        loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    state.save(given["folder"])
    if rank == 0:
        torch.save((given["steps"], model.state_dict(), optimizer.state_dict()), saved)


if __name__ == "__main__":
    config = {"folder": pathlib.Path(sys.argv[1]).resolve(), "steps": int([*sys.argv, 300][2])}
    TorchTrainer(train, train_loop_config=config, scaling_config=ScalingConfig(num_workers=2), torch_config=TorchConfig("gloo")).fit()
