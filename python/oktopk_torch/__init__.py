# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse allreduce with error feedback for PyTorch's DistributedDataParallel (DDP).

    ddp.register_comm_hook(oktopk_torch.state(ddp, "ok_topk(density=0.01, format=packed)"), oktopk_torch.hook)

Any algorithm of oktopk's catalogue averages the gradients; `density` is the share of entries that it selects. What is
not selected stays in a residual and is added to the next gradient. The optimizer sees averages, as from DDP itself."""

import atexit
import functools

import torch  # before the extension module, which needs its libraries
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from . import _native

Error = _native.Error  # a RuntimeError

atexit.register(_native.shut_down)


class state:  # pylint: disable=invalid-name  # reads as a function where a hook is registered
    """What `hook` carries from one iteration to the next: residuals and the states of the algorithm.

    Collective. `model` is the DDP module, whose process group is used, or the module inside together with
    `process_group`. The group must move tensors of the CPU (Gloo); gradients are float32 and lie on the CPU.

    `scheme` is NAME or NAME(KEY=VALUE, ...) of the catalogue; one that selects has a `density` in (0, 1], 0.01 unless
    given. What is wrong with it is an `Error` on every rank, with the names that are right.

    `momentum` in [0, 1), and Nesterov's where `nesterov` is set, is that of gradients before their residual (momentum
    correction and factor masking, Lin et al. 2018): for an optimizer that has none of its own, in place of it."""

    def __init__(self, model, scheme="ok_topk", process_group=None, *, momentum=0.0, nesterov=False):
        is_ddp = isinstance(model, DistributedDataParallel)
        module = model.module if is_ddp else model
        if process_group is None:
            process_group = model.process_group if is_ddp else torch.distributed.group.WORLD
        self.scheme = scheme
        named = [(name, each) for name, each in module.named_parameters() if each.requires_grad]
        self._names = [name for name, _ in named]
        self._index = {each: i for i, (_, each) in enumerate(named)}
        self._uses = _uses(model if is_ddp else None, [each for _, each in named])
        self._native = _native.State(process_group, scheme, momentum, nesterov,
                                     [each.numel() for _, each in named])

    def start(self, bucket):
        """Starts the allreduce of a bucket in the background; gives the future of its averages."""
        future = torch.futures.Future()
        parameters = [self._index[each] for each in bucket.parameters()]
        used = self._uses.take(parameters, bucket)
        self._native.start(bucket.index(), bucket.is_last(), parameters, used, bucket.buffer(), future)
        return future

    def words_sent(self):
        """Words of 4 bytes that this rank has sent for it, as oktopk counts."""
        return self._native.words_sent()

    def state_dict(self):
        """All of this rank's state, for `torch.save`; between two iterations.

        A program that loads it, with the same model and number of ranks, goes on to the bit as the one that saved it,
        where that one had done two iterations or more: DDP builds other buckets after its first. "state" has the bytes
        that `oktopk::save` writes in C++ for buckets over an algorithm by its name, as `data_parallel` makes them."""
        return {"scheme": self.scheme, "parameters": list(self._names), "state": self._native.save()}

    def load_state_dict(self, saved):
        """Goes on from what `state_dict` gave on the same rank. Collective; an `Error` on every rank where it does not
        fit on one of them, and then nothing has changed."""
        state, names, fault = torch.empty(0, dtype=torch.uint8), None, ""
        try:
            state, names = saved["state"].detach(), list(saved["parameters"])
            if names != self._names:
                others = sorted(set(names) ^ set(self._names), key=str) or "they have another order"
                fault = f"the parameters of the saved state and of the model do not fit: {others}"
        except (KeyError, TypeError, ValueError, AttributeError) as wrong:  # of this rank alone: the others hear of it
            fault = f"the saved state is none of oktopk_torch: {wrong!r}"
        self._native.load(state, fault)


class _uses:
    """Which parameters this rank uses in a backward pass that DDP reduces, as DDP counts them: it leaves the gradient of a
    parameter as it is where no rank has used it, whatever a hook has written."""

    def __init__(self, ddp, parameters):
        self._used = [0] * len(parameters)
        self._has_ddp = ddp is not None
        self._drops = not self._has_ddp or _drops_averages(ddp)
        self._counts = not self._has_ddp  # without DDP at hand every pass counts
        if self._has_ddp:
            ddp.register_forward_pre_hook(self._begin)
        for i, each in enumerate(parameters):
            each.register_hook(functools.partial(self._note, i))

    def _begin(self, ddp, _inputs):
        if torch.is_grad_enabled() and ddp.require_backward_grad_sync:  # else within `no_sync`
            self._drops, self._counts = _drops_averages(ddp), True
            self._used[:] = [0] * len(self._used)

    def _note(self, i, _gradient):
        if self._counts:
            self._used[i] = 1

    def take(self, numbers, bucket):
        """0 or 1 of each parameter of the bucket; nothing where DDP applies every average."""
        used = [int(self._used[i] and each.grad is not None) for i, each in zip(numbers, bucket.parameters())]
        for i in numbers:
            self._used[i] = 0
        if self._has_ddp:
            self._counts = self._counts and not bucket.is_last()
        return used if self._drops else []


def _drops_averages(ddp):
    """Whether parameters may have no gradient on any rank, and DDP then drops their averages."""
    return ddp.find_unused_parameters or ddp.static_graph


def hook(carried, bucket):
    """The communication hook, for `DistributedDataParallel.register_comm_hook`, with a `state`."""
    return carried.start(bucket)
