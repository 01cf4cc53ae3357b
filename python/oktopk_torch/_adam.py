# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""AdamW on averages of directions: its step, and who must not divide a second time."""
# pylint: disable=protected-access

import weakref

import torch

try:
    from torch.optim.optimizer import register_optimizer_step_pre_hook as hear
except ImportError:  # before torch 2.0
    hear = None
from ._engine import Error
from ._saving import tried

# Those that divide by the root of a second moment; also those of other packages, by their names.
_DIVIDES = {"Adadelta", "Adafactor", "Adagrad", "Adam", "Adam8bit", "Adamax", "AdamW", "AdamW8bit", "FusedAdam", "Lamb", "NAdam", "RAdam",
            "RMSprop", "SparseAdam"}
made = weakref.WeakSet()  # averagers and states, while they live
_heard = []  # the hook of all optimizers' steps, once


def parsed(adam):
    """(beta2, epsilon), None where there is no `adam`; and what is wrong with it."""
    def pair():
        beta2, epsilon = adam
        return float(beta2), float(epsilon)
    given, fault = (None, "") if adam is None else tried(pair)
    if given is not None and given[1] > 0.5:
        return None, f"adam = {adam!r} are betas of Adam, and here it is (beta2, epsilon), as (0.999, 1e-8): there is no beta1"
    return given, f"adam = {adam!r} is no pair of numbers (beta2, epsilon)" if fault else ""


def shape_in_memory(shape, strides):
    """The dimensions of a tensor as its values lie in memory, the slowest first: rows are of the first one."""
    if 0 in shape or len(shape) < 2 or shape[0] == 1:
        return [shape.numel()]
    return [length for _, length in sorted(((step, length) for step, length in zip(strides, shape) if length > 1), reverse=True)]


def _divides(optimizer):
    return not isinstance(optimizer, AdamW) and any(base.__name__ in _DIVIDES for base in type(optimizer).__mro__)


def _parameters(optimizer):
    return [each for group in optimizer.param_groups for each in group["params"]]


def _refuse_division(optimizer, *_):
    if not _divides(optimizer):
        return
    parameters = _parameters(optimizer)
    for each in list(made):
        if each.adam is not None and any(one in each._parameters() for one in parameters):
            raise Error(divided_twice(optimizer))


def divided_twice(optimizer):
    return (f"the averages are of directions, which have been divided by the root of their second moment, and {type(optimizer).__name__} "
            "divides again: take oktopk_torch.AdamW, or a state without adam")


def add(averager):
    """An averager or a state that has been made."""
    made.add(averager)
    if averager.adam is not None and hear is not None and not _heard:
        _heard.append(hear(_refuse_division))


def refused(passes, optimizers):
    """Before torch 2.0, where nobody hears of steps: why one of the `optimizers()`, which have made some, must not go on; empty
    where all may. To find them takes a look at all objects, so after 2, 4, 8, ... passes alone."""
    looks = hear is None and passes > 1 and passes & (passes - 1) == 0
    return next((divided_twice(each) for each in optimizers() if _divides(each)), "") if looks else ""


class AdamW(torch.optim.SGD):
    """AdamW's step on averages of directions, of a `state` or an `averager` with `adam`, which have what Adam divides by.

    Weights become (1 - lr weight_decay) w - lr average. Holds nothing of its own: beta2 and epsilon are those of `adam`, and
    what they need is in the state. An `Error` where the averages of the parameters are of gradients."""

    def __init__(self, params, lr=1e-3, weight_decay=0.01):
        super().__init__(params, lr=lr, weight_decay=weight_decay)
        self._is_checked = False

    def __setstate__(self, state):
        super().__setstate__(state)
        self._is_checked = False

    def _check(self):
        parameters = _parameters(self)
        states = [each for each in list(made) if any(one in each._parameters() for one in parameters)]
        if any(each.adam is None for each in states):
            raise Error("oktopk_torch.AdamW takes averages of directions, and the state of these parameters averages gradients: give it "
                        "adam=(0.999, 1e-8), or take torch.optim.AdamW with betas=(0.0, 0.999)")
        if not states and not any(each.adam is not None for each in list(made)):
            raise Error("oktopk_torch.AdamW takes averages of directions, and there is no state and no averager with adam=(0.999, 1e-8)")
        self._is_checked = True

    @torch.no_grad()
    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        if not self._is_checked:
            self._check()
        for group in self.param_groups:
            if group.get("momentum", 0):
                raise Error("oktopk_torch.AdamW has no momentum: directions that have waited are averages over steps already")
            rate, decay = float(group["lr"]), float(group["weight_decay"])
            moved = [each for each in group["params"] if each.grad is not None]
            if moved and decay:
                torch._foreach_mul_(moved, 1 - rate * decay)
            if moved:
                torch._foreach_add_(moved, [each.grad for each in moved], alpha=-rate)
        return loss
