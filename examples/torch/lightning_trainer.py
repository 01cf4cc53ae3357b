# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small network with Lightning and sparse gradients; goes on from the checkpoint in FOLDER, where there is one."""
import argparse
import pathlib

import lightning
import oktopk_torch.lightning
import torch
from torch import nn


class Network(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(20, 512), nn.ReLU(), nn.Linear(512, 1))

    def training_step(self, batch, _):
        loss = nn.functional.mse_loss(self.layers(batch), batch.sin().sum(1, keepdim=True))
        if self.global_rank == 0 and self.global_step % 50 == 0:
            print(f"step {self.global_step}: loss {loss.item():.4f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=2e-3)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--ranks", type=int, default=2)
    options = parser.parse_args()
    torch.manual_seed(0)
    sparse = oktopk_torch.lightning.SparseGradients("ok_topk(density=0.02, format=packed)")
    trainer = lightning.Trainer(accelerator="cpu", devices=options.ranks, strategy="ddp", max_epochs=options.epochs,
                                callbacks=[sparse], default_root_dir=options.folder)
    saved, data = options.folder / "last.ckpt", torch.utils.data.DataLoader(torch.randn(12800, 20), 128)
    trainer.fit(Network(), data, ckpt_path=saved if saved.exists() else None)
    trainer.save_checkpoint(saved)
