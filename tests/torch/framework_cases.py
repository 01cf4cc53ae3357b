# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchrun framework_cases.py CASE FOLDER: a case of check_frameworks.py with a framework, on this rank. What it asserts ends it; a
Trainer of Lightning, and that of Transformers, is made anew in one process."""

import os
import pathlib
import sys

import oktopk_torch
import torch
from ddp_cases import check_same_everywhere, refused, residuals_of, warnings_of
from torch import nn

RANK, RANKS, DENSE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "topk_a(density=1)"


def layers(width=64):
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))


def loss_of(model, inputs):
    return nn.functional.mse_loss(model(inputs).float(), inputs.sin().sum(1, keepdim=True))


def weights_of(model):
    return torch.cat([each.detach().flatten() for each in model.parameters()])


def inputs(count=640):
    return torch.randn(count, 8, generator=torch.Generator().manual_seed(1))


def lightning_cases(folder):
    """With what the Trainer offers, all entries sent are dense sums; and what it warns of and refuses."""
    import lightning
    from lightning.pytorch.callbacks import LearningRateFinder
    from lightning.pytorch.strategies import DDPStrategy, SingleDeviceStrategy
    from oktopk_torch.lightning import SparseGradients

    class Network(lightning.LightningModule):
        def __init__(self, is_manual=False, count=1):
            super().__init__()
            torch.manual_seed(5)
            self.learning_rate = 0.02
            self.parts, self.is_manual = nn.ModuleList(layers() for _ in range(count)), is_manual
            self.automatic_optimization = not is_manual

        def training_step(self, batch, _):
            if not self.is_manual:
                return loss_of(self.parts[0], batch)
            optimizers = self.optimizers()
            for part, optimizer in zip(self.parts, optimizers if isinstance(optimizers, list) else [optimizers]):
                self.toggle_optimizer(optimizer)
                optimizer.zero_grad()
                self.manual_backward(loss_of(part, batch))
                optimizer.step()
                self.untoggle_optimizer(optimizer)
            return None

        def configure_optimizers(self):
            return [torch.optim.SGD(each.parameters(), self.learning_rate) for each in self.parts]

    def fit(callbacks, network=None, path=None, strategy=None, **options):
        trainer = lightning.Trainer(accelerator="cpu", devices=RANKS, callbacks=callbacks, strategy=strategy or "ddp", logger=False,
                                    enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
                                    **{"max_epochs": 1, **options})
        network = network or Network()
        trainer.fit(network, torch.utils.data.DataLoader(inputs(), 32), ckpt_path=path)
        return trainer, weights_of(network)

    for make, options in ((Network, {}), (Network, {"accumulate_grad_batches": 2}), (Network, {"precision": "bf16-mixed"}),
                          (lambda: Network(True), {}),
                          (lambda: Network(True, 2), {"strategy": "ddp_find_unused_parameters_true"})):
        _, dense = fit([], make(), **options)
        for scheme, is_dense in ((DENSE, True), ("ok_topk(density=0.05)", False)):
            sparse = SparseGradients(scheme)
            assert not warnings_of(lambda: fit([sparse], make(), **options))
            steps, found = sparse.state.last_step()["steps"], torch.cat([each.detach().flatten() for each in sparse.state._index])
            assert steps == (20 if options.get("strategy") else 10) / options.get("accumulate_grad_batches", 1), (options, steps)
            assert torch.allclose(found, dense, rtol=1e-4, atol=1e-6) == is_dense, options
            check_same_everywhere(found)
    said = warnings_of(lambda: fit([SparseGradients(clip_norm=1.0)], gradient_clip_val=0.5))
    assert len(said) == 1 and "gradient_clip_val of Lightning's Trainer" in said[0] and "clip_norm=0.5" in said[0], said
    refused("has no DDP module in it", fit, [SparseGradients()], strategy=SingleDeviceStrategy())
    refused("there is no algorithm", fit, [SparseGradients("topk_z")])
    # A callback that trains, and goes back to where it began.
    waiting = []

    class Finder(LearningRateFinder):
        def on_fit_start(self, *given):
            pass

        def on_train_epoch_start(self, trainer, pl_module):
            if trainer.current_epoch == 1:
                waiting.append(residuals_of(sparse.state))
                self.lr_find(trainer, pl_module)
                waiting.append(residuals_of(sparse.state))
    sparse = SparseGradients("ok_topk(density=0.05)")
    fit([sparse, Finder(num_training_steps=5, early_stop_threshold=None, update_attr=False)], max_epochs=3, default_root_dir=folder)
    assert sparse.state.last_step()["steps"] > 30 and waiting[0].count_nonzero() and torch.equal(*waiting)
    # The state where Lightning takes one, which it registers for CUDA alone.
    network = Network()
    state = oktopk_torch.state(network, "ok_topk(density=0.05)")
    fit([], network, strategy=DDPStrategy(ddp_comm_state=state, ddp_comm_hook=oktopk_torch.hook))
    assert state.last_step()["steps"] == 10
    # Fabric.
    from lightning.fabric import Fabric
    fabric = Fabric(accelerator="cpu", devices=RANKS, strategy="ddp")
    fabric.launch()
    model = layers()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.02))
    state = oktopk_torch.attach(model, "ok_topk(density=0.05)")
    for step in range(10):
        with fabric.no_backward_sync(model, enabled=step % 2 == 0):
            fabric.backward(loss_of(model, inputs()[step + RANK::20]))
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()
    assert state.last_step()["steps"] == 5
    check_same_everywhere(weights_of(model))


def transformers_cases(folder):
    from oktopk_torch.transformers import SparseGradients
    from transformers import Trainer, TrainingArguments

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(5)
            self.layers = layers()

        def forward(self, inputs, labels=None):
            return {"loss": loss_of(self.layers, inputs)}

    def fit(callbacks, times=1, **options):
        network = Network()
        arguments = TrainingArguments(str(folder), **{
            "use_cpu": True, "max_steps": 10, "per_device_train_batch_size": 16, "learning_rate": 0.02, "max_grad_norm": 0, "optim": "sgd",
            "lr_scheduler_type": "constant", "save_strategy": "no", "report_to": [], "disable_tqdm": True, "dataloader_pin_memory": False,
            **options})
        rows = [{"inputs": each, "labels": each[:1]} for each in inputs()]
        trainer = Trainer(network, arguments, train_dataset=rows, callbacks=callbacks)
        for _training in range(times):
            trainer.train()
        return weights_of(network)

    for options in ({}, {"times": 2}, {"gradient_accumulation_steps": 2}, {"optim": "adamw_torch", "learning_rate": 0.002},
                    {"torch_compile": True, "torch_compile_backend": "aot_eager"}):
        dense = fit([], **options)
        for scheme, is_dense in ((DENSE, True), ("ok_topk(density=0.05)", False)):
            sparse, found = SparseGradients(scheme), []
            assert not warnings_of(lambda: found.append(fit([sparse], **options)))
            assert sparse.state.last_step()["steps"] == 10 * options.get("times", 1)
            assert torch.allclose(found[0], dense, rtol=1e-4, atol=1e-5) == is_dense, options
            check_same_everywhere(found[0])
    sparse = SparseGradients(clip_norm=1.0)
    said = warnings_of(lambda: fit([sparse], max_grad_norm=0.5))
    assert len(said) == 1 and "max_grad_norm of the TrainingArguments" in said[0] and "clip_norm=0.5" in said[0], said
    fit([sparse])  # again, with another model
    assert sparse.state.last_step()["steps"] == 10
    refused("a DDP module takes one, once", fit, [SparseGradients(), SparseGradients()])
    refused("there is no algorithm", fit, [SparseGradients("topk_z")])


def accelerate_cases(folder):
    from accelerate import Accelerator
    weights = {}
    for scheme in (None, DENSE, "ok_topk(density=0.05)"):
        accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
        torch.manual_seed(5)
        model = layers()
        optimizer, data = torch.optim.SGD(model.parameters(), 0.02), torch.utils.data.DataLoader(inputs(), 32)
        model, optimizer, data = accelerator.prepare(model, optimizer, data)
        state = None if scheme is None else oktopk_torch.attach(model, scheme)
        for batch in data:
            with accelerator.accumulate(model):
                accelerator.backward(loss_of(model, batch))
                optimizer.step()
                optimizer.zero_grad()
        weights[scheme] = weights_of(model)
        assert state is None or state.last_step()["steps"] == 5
        check_same_everywhere(weights[scheme])
    assert torch.allclose(weights[None], weights[DENSE], rtol=1e-4, atol=1e-6) and not torch.equal(*list(weights.values())[1:])
    # One rank's state, which Accelerate would keep.
    accelerator.register_for_checkpointing(state)
    refused("give register_for_checkpointing oktopk_torch.gathered(state)", accelerator.save_state, folder / "saved")


if __name__ == "__main__":
    torch.set_num_threads(1)
    CASES = {"lightning": lightning_cases, "transformers": transformers_cases, "accelerate": accelerate_cases}
    CASES[sys.argv[1]](pathlib.Path(sys.argv[2]))
    print("done", flush=True)
