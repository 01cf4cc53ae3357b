# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse averages of gradients between the replicas of torchft, which come and go:

    average = oktopk_torch.torchft.average_gradients(manager, model, "ok_topk(density=0.01)")
    ...
    loss.backward()
    average()          # before the manager's should_commit, so before the step of torchft's optimizer"""

import ctypes
import functools
import logging
import uuid

import torch

from . import Error, _Company, _devices, _engine, _Exchange, _fault_of, _Future, _plain, _saving, averager

_LOG = logging.getLogger(__name__)
_USED = ("current_step", "wait_quorum", "_pg", "_quorum_id", "_timeout")  # of a Manager, which has no other name for some


def _local(tensor):
    """This rank's part of a tensor that FSDP2 has sharded within the replica."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


class _Members:
    """The replicas of a quorum, by the process group that the manager has made for it; this replica alone where that is None."""

    def __init__(self, group, limit):
        self._group, self._size, self._rank = group, 1 if group is None else group.size(), 0
        if self._size > 1:  # a group of torchft tells no rank, and the manager none of a replica that does not participate
            own = uuid.uuid4().bytes
            every = _saving.of_all_ranks(self, own)
            if own not in every:
                raise Error("the process group of the manager has failed")
            self._rank = every.index(own)
        self.company = _Company(self._rank, self._size, "", _Exchange(self), limit)

    def rank(self):
        return self._rank

    def size(self):
        return self._size

    def name(self):
        """Of the backend, where groups from before torch 2 have it."""
        group = self._group
        name = group.getBackendName() if hasattr(group, "getBackendName") else group.name()
        return "nccl" if "nccl" in name else name

    def allgather(self, every, own):
        return self._group.allgather(every, own, torch.distributed.distributed_c10d.AllgatherOptions())


class _Sums(averager):
    """The averages of one quorum, of all gradients of a type on a device together."""

    def __init__(self, members, scheme, parameters, **options):
        self._parameters, self._buckets = list(parameters.values()), {}
        for i, each in enumerate(self._parameters):
            self._buckets.setdefault((each.dtype, each.device), []).append(i)
        dtype = torch.float64 if any(each.dtype == torch.float64 for each in self._parameters) else torch.float32
        fault = next(filter(None, (_fault_of(f"the parameter {name}", _local(each)) for name, each in parameters.items())), "")
        self._lengths, self.called = [_local(each).numel() for each in self._parameters], None
        self._begin(members, scheme, dtype, fault, list(parameters), self._lengths, **options)
        self._closing = _engine.Averager(self._company.group, "dense", False)

    def _meet(self, members):
        return members, members.company

    def ranks(self):
        return self._group.size()

    def average_all(self, step, factor, fault):
        """Makes the gradients, times a factor, their averages. Gives in words what was wrong on this rank, and what on any: then
        no rank has averages, and gradients are as they were."""
        flat, wrong = _saving.tried(lambda: [self._flat(bucket, factor) for bucket in self._buckets.values()])
        futures, text = [], ""
        self._steps[""] = step  # for the density: a rank that has joined has made fewer
        for i, bucket in enumerate(self._buckets.values()):
            buffer = torch.zeros(sum(self._lengths[j] for j in bucket), device="cpu") if flat is None else flat[i]
            futures.append(_Future(Error, _devices.of_future(buffer)))
            self._start(futures[-1], buffer, bucket, "", [], fault or wrong, "", f"the averages of step {step}", is_first=i == 0,
                        is_last=i == len(self._buckets) - 1)
            self.called = step
        for each in futures:
            try:
                each.wait()
            except Error as error:
                text = text or str(error)
        try:
            self._end_step(step, text)
        except Error as error:
            return wrong, text or str(error)
        with torch.no_grad():
            for bucket, buffer in zip(self._buckets.values(), flat):
                self._put(bucket, buffer)
        return "", ""

    def _end_step(self, step, fault):
        """All ranks come here, or none goes on: what has failed on one rank alone, as where another one has died, all take back."""
        one = ctypes.c_float()
        self._closing.average(ctypes.addressof(one), 1, _engine.FLOAT32, key="end", fault=fault, subject=f"the end of step {step}")

    def _flat(self, bucket, factor):
        parts = []
        for i in bucket:
            parameter = self._parameters[i]
            if parameter.grad is None:
                parts.append(torch.zeros(self._lengths[i], dtype=parameter.dtype, device=parameter.device))
                continue
            gradient = _local(parameter.grad).detach()
            fault = _fault_of(f"the gradient of {self._names[i]}", gradient)
            if fault:
                raise Error(fault)
            parts.append(gradient.reshape(-1).to(parameter.device, parameter.dtype))
        flat = torch.cat(parts)
        return flat.mul_(factor) if factor else flat.zero_()

    def _put(self, bucket, flat):
        for i, values in zip(bucket, flat.split([self._lengths[j] for j in bucket])):
            parameter = self._parameters[i]
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            gradient = _local(parameter.grad)
            gradient.copy_(values.view_as(gradient))

    def saved(self, before_step):
        """What this rank carries, or has carried before its last step. Not collective."""
        room = []
        self._native.save(lambda size: room.append(torch.empty(size, dtype=torch.uint8, device="cpu")) or room[0].data_ptr(),
                          before_step)
        return {"parameters": self._names, "ranks": self._group.size(), "state": room[0]}

    def go_on(self, saved):
        """Each rank with its own residuals. An average divides by the ranks: what waits keeps its part in a sum of averages."""
        state = saved["state"]
        share = self._group.size() / saved["ranks"]
        self._native.load([(state.data_ptr(), state.numel())], saved["parameters"], "", share, True, -1, 1, None)


class average_gradients:  # pylint: disable=invalid-name  # reads as a function where it is called
    """Makes the gradients of a model their sparse averages over the replicas of a torchft.Manager, in each of its quorums.

    Call it after each backward pass, and before `should_commit` (the step of torchft's OptimizerWrapper). It takes the place of
    torchft's DistributedDataParallel and of `manager.allreduce`. Scheme and options are those of `oktopk_torch.averager`; a
    schedule of the density counts the manager's steps. A gradient that is None counts as zeros. Clip before the call, each replica
    its own.

    What fails is told to the manager, and to the log: the step is then not committed on any replica, and gradients are as before
    the call. What is wrong with this replica's gradients is an `Error` as well. Nobody waits longer than the manager's time limit,
    or that of its process group.

    Each replica has residuals of its own. One that comes begins with 0, one that goes takes its own away, and a step that was not
    committed leaves no trace. So at any time, averages that were applied, and the mean of residuals over the replicas that are
    there, add up to the averages that dense sums would have applied, but for what those that went had. As with `manager.allreduce`
    a replica that does not participate (it heals while the others compute, or is a spare) brings zeros, and gets the averages."""

    def __init__(self, manager, model, scheme="ok_topk", *, momentum=0.0, nesterov=False, residual_decay=1.0, density=None):
        missing = [each for each in _USED if not hasattr(manager, each)]
        if missing:
            raise Error(f"average_gradients takes a torchft.Manager, and {type(manager).__name__} has no {', '.join(missing)}")
        if any(type(each).__module__ == "torchft.ddp" for each in model.modules()):
            raise Error("torchft's DistributedDataParallel has averaged the gradients already: train with the module inside")
        parameters = {_plain(name): each for name, each in model.named_parameters() if each.requires_grad and _local(each).numel()}
        if not parameters:
            raise Error("the model has no parameters that require a gradient")
        self._manager, self._quorum, self._takes_back = manager, None, False
        self._make = functools.partial(_Sums, scheme=scheme, parameters=parameters, momentum=momentum, nesterov=nesterov,
                                       residual_decay=residual_decay, density=density)
        self._sums = self._make(_Members(None, manager._timeout))  # pylint: disable=protected-access

    def __call__(self):
        manager, wrong = self._manager, ""
        manager.wait_quorum()
        step, failed = manager.current_step(), manager.errored()
        self._takes_back, self._sums.called = self._is_to_take_back(), None
        fault = str(getattr(failed, "original_exception", failed)) if failed else ""
        if failed and manager._quorum_id != self._quorum:  # pylint: disable=protected-access
            return  # there is no group in which the others could hear of it
        try:
            self._follow()
            factor = self._sums.ranks() / manager.num_participants() if manager.is_participating() else 0
            wrong, text = self._sums.average_all(step, factor, fault)
        except (RuntimeError, OSError) as error:  # of torch, too, whose group a replica has left
            text = str(error)
        if text and not failed:
            manager.report_error(Error(text))
        if text:
            _LOG.warning("step %d is not to be committed: %s", step, text)
        if wrong:
            raise Error(wrong)

    def _is_to_take_back(self):
        """Whether the last step was not committed, neither here nor where this replica has healed from."""
        called = self._sums.called
        return self._takes_back or (called is not None and self._manager.current_step() <= called)

    def _follow(self):
        """To the manager's quorum, with what waits here."""
        manager = self._manager
        quorum = manager._quorum_id  # pylint: disable=protected-access
        if quorum != self._quorum:
            saved = self._sums.saved(self._takes_back)
            sums = self._make(_Members(manager._pg, manager._timeout))  # pylint: disable=protected-access
            sums.go_on(saved)
            self._sums, self._quorum = sums, quorum
        elif self._takes_back:  # no error, and no vote
            self._sums.undo()
        self._takes_back = False

    def state_dict(self):
        """What waits on this replica, for its own checkpoint, between steps. Not for the state that the manager hands to a replica
        which comes: that one begins with 0, for this one's residual would count twice."""
        return self._sums.saved(self._is_to_take_back())

    def load_state_dict(self, saved):
        """Goes on from what `state_dict` gave on this replica, before the first step."""
        if self._quorum is not None:
            raise Error("residuals are loaded before the first step: later the other replicas go on without this one")
        try:
            state = saved["state"].detach().cpu().contiguous()
            if state.dtype != torch.uint8:
                raise ValueError(f"elements of type {state.dtype}")
            saved = {"parameters": list(map(str, saved["parameters"])), "ranks": int(saved["ranks"]), "state": state}
        except Exception as wrong:  # pylint: disable=broad-except
            raise Error(f"the saved state is none of average_gradients: {wrong!r}") from None
        self._sums.go_on(saved)

    def last_step(self):
        """Figures of the last step, as `averager.last_step` has them."""
        return self._sums.last_step()

    def residual_norm(self):
        """The Euclidean norm of this replica's residuals after the last call, whether its step was committed or not."""
        return self._sums.residual_norm()

    def report(self):
        """What runs, and what it costs, as a text."""
        return self._sums.report()
