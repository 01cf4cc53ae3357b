# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchrun --nproc_per_node 2 examples/torch/torchrun.py FOLDER [--compile inductor]: trains a small network with DDP, compiled where
asked, and sparse gradients; goes on from what is saved in FOLDER by torch's distributed checkpoint, on any number of ranks."""
import argparse
import pathlib

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--compile", help="a backend of torch.compile")
    options = parser.parse_args()
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    ddp = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1)))
    model = torch.compile(ddp, backend=options.compile) if options.compile else ddp
    state = oktopk_torch.attach(model, "ok_topk(density=0.02, format=packed)")
    optimizer, saved = torch.optim.AdamW(model.parameters(), lr=2e-3), {"step": 0, "sparse": oktopk_torch.gathered(state)}
    if (options.folder / ".metadata").exists():
        saved["model"], saved["optimizer"] = get_state_dict(ddp, optimizer)
        checkpoint.load(saved, checkpoint_id=options.folder)
        set_state_dict(ddp, optimizer, model_state_dict=saved["model"], optim_state_dict=saved["optimizer"])
    for step in range(saved["step"], options.steps):
        inputs = torch.randn(128, 20, generator=torch.Generator().manual_seed(step * dist.get_world_size() + dist.get_rank()))
        loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0 and step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    saved["step"], (saved["model"], saved["optimizer"]) = options.steps, get_state_dict(ddp, optimizer)
    checkpoint.save(saved, checkpoint_id=options.folder)
