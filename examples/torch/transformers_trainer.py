# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small GPT-2 with the Trainer of Transformers and sparse gradients; goes on from the last checkpoint in FOLDER.

torchrun --nproc_per_node 2 examples/torch/transformers_trainer.py FOLDER"""
import argparse
import pathlib

import oktopk_torch.transformers
import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments


class Says(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kwargs):
        if state.is_world_process_zero and "loss" in logs:
            print(f"step {state.global_step}: loss {float(logs['loss']):.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    torch.manual_seed(0)
    rows = [(3 * torch.arange(16) + i) % 64 for i in range(4096)]
    model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0))
    sparse = oktopk_torch.transformers.SparseGradients("ok_topk(density=0.05, format=packed)", clip_norm=1.0)
    arguments = TrainingArguments(
        str(options.folder), use_cpu=True, max_steps=options.steps, per_device_train_batch_size=8, learning_rate=3e-3, max_grad_norm=0,
        lr_scheduler_type="constant", logging_steps=50, save_steps=50, report_to=[], disable_tqdm=True, dataloader_pin_memory=False)
    trainer = Trainer(model, arguments, train_dataset=[{"input_ids": each, "labels": each} for each in rows], callbacks=[sparse, Says()])
    trainer.train(resume_from_checkpoint=any(options.folder.glob("checkpoint-*")))
