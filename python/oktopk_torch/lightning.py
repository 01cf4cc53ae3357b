# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse averages of gradients in Lightning: `Trainer(strategy="ddp", callbacks=[oktopk_torch.lightning.SparseGradients()])`."""

try:
    from lightning.pytorch import Callback
except ImportError:
    try:
        from pytorch_lightning import Callback
    except ImportError as missing:
        raise ImportError(f"oktopk_torch.lightning needs Lightning: pip install lightning ({missing})") from None

from . import _watch, attach, gathered


class SparseGradients(Callback):
    """Averages the gradients of a Trainer with a DDP strategy, and saves the residuals of all ranks in its checkpoints.

    Scheme and options are those of `oktopk_torch.state`; `grad_scaler` is that of the Trainer's precision unless given.
    `self.state` is the state while and after `fit` runs, None before. Checkpoints hold what waits on all ranks, gathered, so each
    rank needs memory for all; a Trainer with another number of ranks may go on from them. A strategy without one DDP module is an
    `Error`. A warning says so where the Trainer clips gradients, for which `clip_norm` is there, and where a run goes on from a
    checkpoint that has no residuals."""

    def __init__(self, scheme="ok_topk", **options):
        self.state, self._scheme, self._options, self._saved, self._fits = None, scheme, options, None, False

    def setup(self, trainer, pl_module, stage):
        self._fits = stage == "fit"  # other stages load a checkpoint, too
        if self._fits:
            self.state = self._saved = None

    def on_train_start(self, trainer, pl_module):
        options = {"grad_scaler": getattr(trainer.precision_plugin, "scaler", None), **self._options}
        if trainer.gradient_clip_val:
            _watch.warn_of_clipping("gradient_clip_val of Lightning's Trainer", "None", trainer.gradient_clip_val)
        self.state = attach(trainer.strategy.model, self._scheme, **options)
        saved, self._saved = self._saved, None
        if saved is not None:
            gathered(self.state).load_state_dict(saved)
        elif trainer.global_step:
            self.state._watch.warn_of_forgotten(  # pylint: disable=protected-access
                f"Lightning goes on from step {trainer.global_step} without residuals")

    def state_dict(self):
        return {} if self.state is None else gathered(self.state).state_dict()

    def load_state_dict(self, state_dict):
        if self._fits and self.state is not None:  # as of LearningRateFinder, which goes back to where it began
            gathered(self.state).load_state_dict(state_dict)
        else:
            self._saved = state_dict
