# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Warnings of a state: that it takes no part in the training of its module, and that it was not loaded where all else was."""

import warnings
import weakref

import torch

from . import _ddp
from ._saving import tried

STEPS_WITHOUT_BUCKET = 5


def _warn(text):
    warnings.warn(f"oktopk_torch: {text}")


def _optimizers(parameters):
    """Those of the program that have one of the parameters."""
    return [each for each in _ddp.objects(torch.optim.Optimizer)
            if any(one in parameters for group in getattr(each, "param_groups", ()) for one in group["params"])]


def _has_steps(optimizer, parameters):
    """Whether it has moved one of the parameters, as far as it remembers. Torch's distributed checkpoint makes a step without
    gradients, so as to have something to load into."""
    for each in parameters:
        kept = optimizer.state[each] if each in optimizer.state else {}
        if float(kept["step"]) > 1 if "step" in kept else any(isinstance(one, torch.Tensor) and bool(one.any()) for one in kept.values()):
            return True
    return False


def optimizers_with_steps(parameters):
    """The optimizers of the program that have moved one of the parameters."""
    return [each for each in _optimizers(parameters) if _has_steps(each, parameters)]


class Watch:
    """What a state hears until its first bucket."""

    def __init__(self, parameters):
        self.was_loaded, self.has_begun = False, False
        self._parameters, self._moves = parameters, {}  # of each parameter: its version, and how often that has changed
        # An optimizer that is loaded has other lists.
        self._lists = [(weakref.ref(each), each.param_groups) for each in tried(_optimizers, parameters)[0] or ()]

    def end(self):
        self.has_begun, self._lists, self._moves = True, [], {}

    def see_gradient(self, i, parameter, state):
        """A gradient of a backward pass. What an optimizer has moved since the last one is a step."""
        version, moves = self._moves.get(i, (parameter._version, 0))  # pylint: disable=protected-access
        moves += version != parameter._version  # pylint: disable=protected-access
        self._moves[i] = parameter._version, moves  # pylint: disable=protected-access
        if moves == STEPS_WITHOUT_BUCKET:
            self.end()
            why, fault = tried(self._why_silent, state)
            _warn(f"the module has made {moves} steps, and its state has seen no bucket, so it averages nothing: {why or fault}")

    def _why_silent(self, state):
        found = _ddp.around(self._parameters)
        if not found:
            return "no DDP module has its parameters"
        attach = "oktopk_torch.attach(model, scheme) makes a state and registers it"
        hooks = [one for each in found for one in getattr(each, "_comm_hooks", ())]
        if not any(one[1] is state for one in hooks):
            others = ", ".join(getattr(one[0], "__qualname__", repr(one[0])) for one in hooks)
            if others:
                return f"the DDP module has another hook or another state ({others}); {attach}"
            if all(hasattr(each, "_comm_hooks") for each in found):
                return (f"it is not registered at the DDP module; {attach}. (Lightning registers a ddp_comm_state for CUDA alone: "
                        "oktopk_torch.lightning.SparseGradients does it anywhere.)")
        if not any(each.require_backward_grad_sync for each in found):
            return "DDP is within no_sync, and has been since the state was made"
        return f"the forward pass may be one of the module inside, and not of the DDP module; where the hook was never registered: {attach}"

    def see_bucket(self):
        """The first one: training begins or goes on."""
        was_resumed = not self.was_loaded and tried(self._is_resumed)[0]  # what cannot be known is no fault
        self.end()
        if was_resumed:
            self.warn_of_forgotten("an optimizer of its parameters has steps behind it")

    def _is_resumed(self):
        was_loaded = any(of() is not None and of().param_groups is not groups for of, groups in self._lists)
        return was_loaded or any(_has_steps(each, self._parameters) for each in _optimizers(self._parameters))

    def warn_of_forgotten(self, why):
        self.was_loaded = True  # it is said once
        _warn(f"{why}, and the state begins with residuals of 0: where this run was resumed, what waited in them is lost. Save the state "
              "of every rank and load it, with state.save(folder) and state.load(folder) or oktopk_torch.gathered")


def warn_of_clipping(what, off, norm):
    _warn(f"{what} clips averages, after what waits in the residuals was taken out of them, so that residuals grow: set it to {off}, and "
          f"give clip_norm={norm}, which clips the gradient of each rank before")
