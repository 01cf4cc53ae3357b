# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of tensors that are sparse already: entries of a tensor for the engine, and back."""

import functools
import math
import operator

import torch

from . import _engine
from ._engine import Error
from ._saving import tried

ELEMENTS = {torch.float32: _engine.FLOAT32, torch.float64: _engine.FLOAT64, torch.int32: _engine.INT32, torch.int64: _engine.INT64,
            torch.complex64: _engine.COMPLEX64, torch.complex128: _engine.COMPLEX128}
_NARROW = (torch.float16, torch.bfloat16)
# From torch 2.0 on; without it newer releases warn that they check nothing.
_UNCHECKED = {"check_invariants": False} if hasattr(torch.sparse, "check_sparse_tensor_invariants") else {}


def _fault_of(what, tensor):
    """Why it cannot be summed, in words; empty where it can."""
    if not isinstance(tensor, torch.Tensor):
        return f"{what} is of type {type(tensor).__name__}, and no tensor"
    if tensor.layout == torch.strided:
        return (f"{what} is dense: give tensor.to_sparse(1) where most of its rows are zeros, and else take torch.distributed.all_reduce, "
                "or an averager")
    if tensor.layout != torch.sparse_coo:
        return f"{what} is of layout {tensor.layout}: give tensor.to_sparse_coo()"
    if tensor.device.type == "meta":
        return f"{what} lies on meta, where no values are"
    if tensor.dtype not in ELEMENTS:
        return f"{what} is of type {tensor.dtype}, expected one of {', '.join(map(str, ELEMENTS))}"
    return ""


def _coalesced(tensor):
    """The tensor, whose indices ascend."""
    return tensor._coalesced_(True)  # pylint: disable=protected-access


class _Entries:
    """Those of a tensor, in the memory of the host."""

    def __init__(self, what, tensor):
        fault = _fault_of(what, tensor)
        if fault:
            raise Error(fault)
        self.shape, self.sizes, self.row = tensor.shape, tensor.shape[:tensor.sparse_dim()], tensor.shape[tensor.sparse_dim():]
        self.length, self.width = functools.reduce(operator.mul, self.sizes, 1), functools.reduce(operator.mul, self.row, 1)
        if not self.width:
            raise Error(f"{what} has rows of shape {tuple(self.row)}, without a value")
        places = tensor.detach()._indices().cpu()  # pylint: disable=protected-access  # also of one that is not coalesced
        flat = torch.zeros(places.shape[1], dtype=torch.int64, device="cpu")
        for i, (place, size) in enumerate(zip(places, self.sizes)):  # torch makes no tensor whose sizes multiply to 2^63
            if len(self.sizes) > 1 and len(place) and not 0 <= int(place.min()) <= int(place.max()) < size:  # the engine sees one alone
                raise Error(f"{what} has an index of dimension {i} that is not in [0, {size})")
            flat = place if len(self.sizes) == 1 else flat * size + place
        values = tensor.detach()._values().cpu()  # pylint: disable=protected-access
        self.indices, self.values = flat.contiguous(), values.resolve_conj().resolve_neg().contiguous()

    def with_others(self, indices, values):
        """A coalesced tensor of the same shape."""
        places = []
        for size in reversed(self.sizes[1:]):
            places.append(indices % size)
            indices = torch.div(indices, size, rounding_mode="floor")
        places = torch.stack([indices, *reversed(places)]) if self.sizes else indices.new_empty(0, len(indices))
        return _coalesced(torch.sparse_coo_tensor(places, values, self.shape, device="cpu", **_UNCHECKED))


def summed(group, tensor, what, subject="", fault=""):
    """The sum over the ranks of a group of the engine. Collective. With a `fault`, or what is wrong with the tensor, this rank takes
    part all the same, so that all ranks hear of it."""
    given, wrong = tried(_Entries, what, tensor)
    fault, found = fault or wrong, []
    if fault:
        return group.sparse_sum((0, None, None), _engine.FLOAT32, 0, 1, lambda count: (), fault=fault)  # raises

    def room(count):
        found.extend((torch.empty(count, dtype=torch.int64, device="cpu"),
                      torch.empty((count, *given.row), dtype=tensor.dtype, device="cpu")))
        return [(each.data_ptr(), each.numel() * each.element_size()) for each in found]
    entries = len(given.indices), given.indices.data_ptr(), given.values.data_ptr()
    many = f"{len(given.sizes)} sparse dimension{'s' if len(given.sizes) != 1 else ''}"
    group.sparse_sum(entries, ELEMENTS[tensor.dtype], given.length, given.width, room,
                     subject=f"{subject}shape {tuple(given.shape)} with {many}, {tensor.dtype}")
    return given.with_others(*found).to(tensor.device)


def none_of(gradient):
    """A gradient of a table of the same shape, type and device without entries."""
    how = {"dtype": gradient.dtype, "device": gradient.device}
    places, rows = torch.zeros(1, 0, dtype=torch.int64, device=gradient.device), torch.zeros(0, *gradient.shape[1:], **how)
    return _coalesced(torch.sparse_coo_tensor(places, rows, gradient.shape, **_UNCHECKED))


def averaged(group, size, gradient, what, fault=""):
    """The average of a sparse gradient over so many ranks, coalesced, and an Error on all of them where it is not finite."""
    if gradient.is_sparse and gradient._nnz() == 0:  # pylint: disable=protected-access
        gradient = none_of(gradient)  # within `join` it has other dimensions
    narrow = gradient.dtype if gradient.dtype in _NARROW else None
    average = summed(group, gradient if narrow is None else gradient.float(), what, f"{what}: ", fault)
    average.values().div_(size)
    if narrow is not None:
        average = _coalesced(average.to(narrow))
    if not math.isfinite(float(average.values().float().abs().sum())) and not bool(torch.isfinite(average.values()).all()):
        raise Error(f"{what} is not finite on some rank, or its sum is not")
    return average
