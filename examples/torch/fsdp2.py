# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchrun --nproc_per_node 2 examples/torch/fsdp2.py FOLDER: trains a small network in replicas of one rank, each with FSDP2, and
sparse averages between them; goes on from what is saved in FOLDER, with any number of replicas."""
import pathlib
import sys

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint, fsdp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

if __name__ == "__main__":
    folder, steps = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 300
    dist.init_process_group("gloo")
    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=("replica", "shard"))
    torch.manual_seed(0)
    model = fsdp.fully_shard(nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1)), mesh=mesh["shard"])
    average = oktopk_torch.attach(model, "ok_topk(density=0.02, format=packed)", replicas=mesh["replica"].get_group())
    optimizer, saved = torch.optim.AdamW(model.parameters(), lr=2e-3), {"step": 0, "sparse": oktopk_torch.gathered(average)}
    if (folder / ".metadata").exists():
        saved["model"], saved["optimizer"] = get_state_dict(model, optimizer)
        checkpoint.load(saved, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
    for step in range(saved["step"], steps):
        inputs = torch.randn(128, 20, generator=torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank()))
        loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    saved["step"], (saved["model"], saved["optimizer"]) = steps, get_state_dict(model, optimizer)
    checkpoint.save(saved, checkpoint_id=folder)
