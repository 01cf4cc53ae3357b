# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Machines of several ranks: dense sums within a node, by a process group of its ranks, and a share of each tensor for every one of
them, which is averaged between nodes.

A tensor of n values has m = ceil(n / ranks of a node) values in each share, the last of them zeros where n is not enough. So the
owner of a value depends on its tensor alone, and not on the buckets that DDP builds.

All sums of a step are given to the process group before the first averages are gathered: ranks of a node need one order of calls,
and averages of different shares are there at different times."""

import contextlib
import ctypes
import functools
import json
import threading

import torch
import torch.distributed as dist

from . import _devices, _engine, _saving
from ._engine import Error


class Node:
    """Which rank has which share. Collective over `group`, of all ranks; `node_group` has those of the own node. `kinds` are pairs
    of a device and a type of tensors, whose sums are tried here; a `fault` of one rank is an Error on every rank. `meet(rank,
    size, part)` connects ranks."""

    def __init__(self, group, node_group, kinds, clip_norm, fault, meet):
        found, strange = _saving.tried(self._ranks_of, group, node_group)
        every = [json.loads(each) for each in _saving.agreed(group, json.dumps(found).encode(), fault or strange)]
        self.nodes = sorted(list(each) for each in set(map(tuple, every)))  # ranks of the group
        if sorted(sum(self.nodes, [])) != list(range(group.size())) or any(rank not in of for rank, of in enumerate(every)):
            raise Error(f"the groups of nodes have the ranks {self.nodes}, and each of the {group.size()} ranks is in one node")
        if len({len(each) for each in self.nodes}) > 1:
            raise Error(f"the nodes have the ranks {self.nodes}, and as many ranks each are needed")
        self.all, self.group, self.share, self.size = group, node_group, node_group.rank(), node_group.size()
        self.clip_norm, self.line = clip_norm, _devices.Line()
        self.agreed(lambda: self._try_sums(kinds))
        number = self.nodes.index(found)
        self.between = meet(number, len(self.nodes), f", share {self.share}")
        self.agreement = Agreement(meet(self.share, self.size, f", node {number}"))

    @staticmethod
    def _ranks_of(group, node_group):
        """Those of the node, as the group of all numbers them."""
        known = dist.distributed_c10d._pg_group_ranks  # pylint: disable=protected-access
        if not isinstance(node_group, dist.ProcessGroup) or node_group not in known or group not in known:
            raise Error(f"node_group is {node_group!r}, and no process group of new_group that this rank is in")
        strange = set(known[node_group]) - set(known[group])
        if strange:
            raise Error(f"node_group has the ranks {sorted(strange)}, which DDP does not have")
        return [known[group][each] for each in sorted(known[node_group], key=known[node_group].get)]

    def agreed(self, make):
        """What a function makes on every rank, or an Error on every rank."""
        made, fault = _saving.tried(make)
        _saving.agreed(self.all, b"", fault)
        return made

    def lacking(self, lacks):
        """The ranks of all that lack something: shares of a tensor are averaged in one way. Collective."""
        return [rank for rank, does in enumerate(_saving.of_all_ranks(self.all, bytes([lacks]))) if any(does)]

    def averaged_by(self):
        """The ranks that average the share of this one, in words."""
        return (f"share {self.share} of each node, within which indices count; its ranks 0 to {len(self.nodes) - 1} are the ranks "
                f"{', '.join(str(each[self.share]) for each in self.nodes)} of all")

    def says(self):
        return f"dense sums within a node of {self.size} ranks, and between nodes {self.averaged_by()}"

    def length_of(self, values):
        """Of a share of so many values."""
        return -(-values // self.size)

    def _try_sums(self, kinds):
        """Finds which calls the process group has, for all kinds: the same on all ranks of the node."""
        ways = [(self._by_reduce_scatter, self._into_one), (self._by_all_to_all, self._into_list)]
        if all(device.type == "cpu" for device, _ in kinds):
            ways.reverse()  # Gloo's reduce-scatter takes twice as long, and older releases have none
        for self._reduce_scatter, self._gather in ways:
            try:
                for device, kind in kinds:
                    ones = torch.ones(self.size, 1, dtype=kind, device="cpu").to(device)
                    share, finish = self._reduce_scatter(ones)
                    finish()
                    self._gather(torch.empty_like(ones), share)
                return
            except RuntimeError as raised:  # of all ranks, before the first message
                wrong = f"node_group, of {self.group.name()}, has no sums of {kind} on {device}: {raised}"
        raise Error(wrong)

    def scattered(self, arranged):
        """Starts the sum of the own row; gives its tensor, and a function that waits until it is there."""
        return self._reduce_scatter(arranged)

    def gathered(self, share):
        """The shares of the node, a row each."""
        rows = share.new_empty(self.size, share.numel())
        self._gather(rows, share)
        return rows

    def _by_reduce_scatter(self, arranged):
        share = torch.empty_like(arranged[0])
        return share, dist.reduce_scatter_tensor(share, arranged.view(-1), group=self.group, async_op=True).wait

    def _by_all_to_all(self, arranged):
        share, came = torch.empty_like(arranged[0]), torch.empty_like(arranged)
        work = dist.all_to_all_single(came, arranged, group=self.group, async_op=True)

        def finish():
            work.wait()
            torch.sum(came, 0, out=share)
        return share, finish

    def _into_one(self, rows, share):
        dist.all_gather_into_tensor(rows.view(-1), share, group=self.group)

    def _into_list(self, rows, share):
        dist.all_gather(list(rows.unbind(0)), share, group=self.group)


@contextlib.contextmanager
def _named(what):
    """Says of what the process group raises where it was."""
    try:
        yield
    except RuntimeError as raised:
        raise Error(f"the {what} within the node: {raised}") from None


def _throw(text):
    raise RuntimeError(text)


class Agreement:
    """What ranks of a node tell each other at the end of a step, over the engine: one of its shares may have failed."""

    def __init__(self, company):
        self._native = _engine.Averager(company.group, "dense", True)

    def of(self, *flags, fault=""):
        """Which of the flags a rank of the node has set; an Error on all of them where one has a fault. There are as many flags in each
        call, on all ranks."""
        values = (ctypes.c_double * len(flags))(*flags)
        self._native.average(ctypes.addressof(values), len(flags), _engine.FLOAT64, key="flags", fault=fault)
        return [each > 0 for each in values]


class Step:
    """The buckets of a step on their way through the node."""

    def __init__(self, node, loss_scale):
        self.node, self.fault = node, ""  # of the own share: the engine's sentence
        self._loss_scale, self._squares = loss_scale, 0.0
        self._lock, self._waiting = threading.Lock(), []  # None when all sums have begun

    def gather(self, job, failed):
        """Does a job on the thread of the node's line, when all sums of the step have begun on this rank. One of a pass that is broken
        off is never done: DDP drops its buckets."""
        start = functools.partial(self.node.line.do, job, failed, waits=True)
        with self._lock:
            self._waiting.append(start) if self._waiting is not None else start()

    def scatter(self, buffer, lengths, used, is_wrong, is_last):
        """Starts the mean over the node of the own share of a bucket of tensors of these lengths. A rank with a fault takes part
        with zeros."""
        bucket = Bucket(self, lengths)
        try:
            rows = buffer.new_zeros(self.node.size, bucket.length + len(used))
            if not is_wrong:
                self._arrange(bucket, buffer, lengths, used, rows)
            bucket.share, bucket.wait = self.node.scattered(rows)
        except Exception as raised:  # pylint: disable=broad-except  # a fault of the call that the other ranks make
            bucket.share, bucket.wait = buffer.new_zeros(bucket.length + len(used)), functools.partial(_throw, str(raised))
        finally:
            if is_last:  # also where there is no memory for that: DDP waits for the other buckets
                self._begin_gathers()
        return bucket

    def _arrange(self, bucket, buffer, lengths, used, rows):
        with torch.no_grad():
            by = self._factor(buffer, lengths, used)
            for flat, part in bucket.pairs(buffer, rows):
                torch.mul(flat, by, out=part)
            if used:
                rows[:, bucket.length:] = torch.tensor(used, dtype=buffer.dtype, device="cpu").to(buffer.device)

    def _begin_gathers(self):
        with self._lock:
            waiting, self._waiting = self._waiting or [], None
            for start in waiting:
                start()

    def _factor(self, buffer, lengths, used):
        """That of the mean, and of clipping by the norm of what this rank has used in this bucket and those before."""
        if not self.node.clip_norm:
            return 1 / self.node.size
        # A tensor where the bucket lies, so that nobody waits for a device.
        wide = torch.float64 if buffer.dtype == torch.float64 else torch.float32
        for each in [part for part, is_used in zip(buffer.split(lengths), used) if is_used] if used else [buffer]:
            self._squares = self._squares + (torch.linalg.vector_norm(each, dtype=wide) / self._loss_scale) ** 2
        if isinstance(self._squares, float):  # nothing yet
            return 1 / self.node.size
        return (self.node.clip_norm / self._squares.sqrt()).clamp(max=1) / self.node.size


class Bucket:
    """Tensors of a bucket and their shares: a row for each rank of the node, with the tensors of the bucket one after the other."""

    def __init__(self, step, lengths):
        self._step, self._lengths = step, lengths
        self.length = sum(map(step.node.length_of, lengths))  # of a row
        self.share = self.wait = None  # the own row, with a flag for each tensor behind its values; waits until it is there

    def pairs(self, flat, rows):
        """The same values in the bucket and in rows: of each tensor those that fill rows, and what is left."""
        at, column = 0, 0
        for length in self._lengths:
            share = self._step.node.length_of(length)
            full = length // share if share else 0
            left, width = length - full * share, slice(column, column + share)
            yield flat[at:at + full * share].view(full, share), rows[:full, width]
            if left:
                yield flat[at + full * share:at + length], rows[full, column:column + left]
            at, column = at + length, column + share

    def finish(self):
        """Waits on the host for the sum of the own share."""
        streams = _devices.streams_of(self.share.device)
        with _named("sum"):
            self.wait() if streams is None else streams.finish(self.wait)

    def used(self, values):
        """0 or 1 of each tensor: whether some rank of the node has used it; nothing where nobody asks."""
        flags, streams = values[self.length:], _devices.streams_of(values.device)
        return [int(each > 0) for each in (flags.tolist() if streams is None else streams.read(flags))]

    def heard(self, end):
        """What hears of the end of the share's average before `end` does."""
        def note(text):
            self._step.fault = self._step.fault or text
            end(text)
        return note

    def gather(self, buffer):
        """Puts the averages of all shares into the bucket."""
        streams, share = _devices.streams_of(buffer.device), self.share[:self.length]
        with contextlib.nullcontext() if streams is None else streams.current(), torch.no_grad():
            with _named("gather"):
                rows = self._step.node.gathered(share)
            for flat, part in self.pairs(buffer, rows):
                flat.copy_(part)
            for each in (share, buffer) if streams is not None else ():  # `rows` are of this stream
                streams.hold(each)


def of_ranks(ranks, nodes):
    """The ranks of each node; each rank for itself where there are no nodes."""
    return [[each] for each in range(ranks)] if nodes is None else nodes
