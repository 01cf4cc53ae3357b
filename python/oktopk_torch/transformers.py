# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse averages of gradients in the Trainer of Transformers: `Trainer(..., callbacks=[oktopk_torch.transformers.SparseGradients()])`."""

import gc
import os

try:
    from transformers import TrainerCallback
    from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR
except ImportError as missing:
    raise ImportError(f"oktopk_torch.transformers needs Transformers: pip install transformers ({missing})") from None

from . import Error, _ddp, _saving, _watch, attach


class SparseGradients(TrainerCallback):
    """Averages the gradients of a Trainer that trains with DDP, and saves the residuals of all ranks beside its checkpoints.

    Scheme and options are those of `oktopk_torch.state`; `grad_scaler` is that of the Trainer unless given. `self.state` is the
    state while and after `train` runs, None before. Each checkpoint folder gets a file a rank, as of `state.save`. A run that goes
    on from a checkpoint, also with another number of ranks, looks for them in `resume_from`, in `resume_from_checkpoint` of the
    TrainingArguments, and in `checkpoint-STEP` of its output folder: a checkpoint that lies elsewhere is named by one of
    the first two. A Trainer that trains the same model again goes on with its state. Training without DDP is an `Error`. A warning
    says so where the Trainer clips gradients, for which `clip_norm` is there, and where a run goes on and finds no residuals."""

    def __init__(self, scheme="ok_topk", resume_from=None, **options):
        self.state, self._scheme, self._resume_from, self._options = None, scheme, resume_from, options

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
        gc.collect()  # the DDP module of a training before
        around = [each for each in _ddp.around(set(model.parameters())) if any(one is model for one in each.modules())]
        if len(around) != 1:
            raise Error(f"the model of the Trainer is in {len(around)} DDP modules, and oktopk_torch averages for one: start several ranks "
                        "with torchrun, without FSDP and DeepSpeed")
        if args.max_grad_norm:
            _watch.warn_of_clipping("max_grad_norm of the TrainingArguments", "0", args.max_grad_norm)
        registered = [each[1] for each in getattr(around[0], "_comm_hooks", ())]  # a Trainer that trains again may keep its DDP module
        if self.state is None or not any(each is self.state for each in registered):
            self.state = attach(around[0], self._scheme, **{"grad_scaler": getattr(optimizer, "scaler", None), **self._options})
        if not state.global_step:
            return
        folders = [each for each in (args.resume_from_checkpoint, self._folder(args, state)) if isinstance(each, (str, os.PathLike))]
        saved = self._resume_from or _saving.first_of(folders, self.state._group)  # pylint: disable=protected-access
        if saved:
            self.state.load(saved)
        else:
            self.state._watch.warn_of_forgotten(  # pylint: disable=protected-access
                f"the Trainer goes on from step {state.global_step}, and there are no residuals in {' and '.join(map(str, folders))}")

    def on_save(self, args, state, control, **kwargs):
        if self.state is not None and not args.save_only_model:
            self.state.save(self._folder(args, state))

    @staticmethod
    def _folder(args, state):
        return os.path.join(args.output_dir, f"{PREFIX_CHECKPOINT_DIR}-{state.global_step}")
