# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""States of all ranks in a folder, a file a rank; and bytes of all ranks of a process group."""

import ctypes
import inspect
import io
import json
import os
import pathlib
import re
import uuid

import torch

from ._engine import Error

INDEX = "oktopk.json"
_FILE = re.compile(r"oktopk\.rank(\d+)\.(?:([0-9a-f]{32})\.pt|new)")
_PIECE = 2 ** 24  # bytes at a time, for they may go over a device
_MAPPED = {"mmap": True} if "mmap" in inspect.signature(torch.load).parameters else {}  # from torch 2.1 on


def _name(rank, tag):
    return f"oktopk.rank{rank}.{tag}.pt"


def _device(group):
    """Where a process group takes tensors: the host where it does."""
    if not hasattr(group, "_get_backend"):  # before torch 2
        return "cuda" if group.name() == "nccl" else "cpu"
    kinds = [each.type for each in getattr(group, "_device_types", ())]
    return "cpu" if "cpu" in kinds or not kinds else kinds[0]


def of_all_ranks(group, data):
    """Bytes of each rank. Collective."""
    where = _device(group)

    def gathered(tensor):
        tensor = tensor.to(where)
        every = [torch.empty_like(tensor) for _ in range(group.size())]
        group.allgather([every], [tensor]).wait()
        return [each.cpu() for each in every]

    if group.size() == 1:
        return [data]
    lengths = [int(each) for each in gathered(torch.tensor([len(data)], device="cpu"))]
    padded = torch.zeros(max(lengths), dtype=torch.uint8, device="cpu")
    if data:
        padded[:len(data)] = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    found = [bytearray() for _ in lengths]
    for piece in padded.split(_PIECE):
        for every, each in zip(found, gathered(piece)):
            every += ctypes.string_at(each.data_ptr(), each.numel())
    return [bytes(each[:length]) for each, length in zip(found, lengths)]


def agreed(group, data, fault):
    """Bytes of each rank, or an Error on every rank where one has a fault. Collective."""
    every = of_all_ranks(group, b"!" + fault.encode() if fault else b"+" + data)
    for rank, each in enumerate(every):
        if each[:1] == b"!":
            raise Error(f"rank {rank}: {each[1:].decode()}")
    return [each[1:] for each in every]


def tried(function, *arguments):
    """What a function gives, and in words what it raises: the other ranks go on to where they hear of it."""
    try:
        return function(*arguments), ""
    except Exception as raised:  # pylint: disable=broad-except
        return None, str(raised) if isinstance(raised, Error) else repr(raised)


def to_bytes(saved):
    """Of what `saved()` gives."""
    file = io.BytesIO()
    torch.save(saved(), file)
    return file.getvalue()


def from_bytes(data):
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def save(folder, group, saved):
    """`saved()` gives what is written. Files are complete on all ranks before the index names them, and until then it names
    those of the save before."""
    folder, rank = pathlib.Path(folder), group.rank()
    new = folder / f"oktopk.rank{rank}.new"

    def write():
        folder.mkdir(parents=True, exist_ok=True)
        torch.save(saved(), new)

    def commit():
        beside = folder / f"{INDEX}.new"
        beside.write_text(json.dumps({"tag": tag, "ranks": group.size()}), "ascii")
        os.replace(beside, folder / INDEX)

    _, fault = tried(write)
    tag = agreed(group, uuid.uuid4().hex.encode(), fault)[0].decode()
    _, fault = tried(os.replace, new, folder / _name(rank, tag))
    agreed(group, b"", fault)
    _, fault = tried(commit) if rank == 0 else (None, "")
    agreed(group, b"", fault)
    for each in folder.iterdir():  # of other saves: those of ranks that are no more are the first one's
        found = _FILE.fullmatch(each.name)
        if found and found[2] != tag and (int(found[1]) == rank or (rank == 0 and int(found[1]) >= group.size())):
            tried(each.unlink)


def load(folder, group):
    """What every rank needs of the last complete save: the own state, or the list of all where another number of ranks has saved;
    whether it has; and in words what is wrong on this rank. Collective."""
    folder, rank = pathlib.Path(folder), group.rank()

    def index():
        if not (folder / INDEX).exists():
            raise Error(f"{folder} has no {INDEX}, so no state was saved there, or not to its end")
        return (folder / INDEX).read_bytes()

    def read(of):
        path = folder / _name(of, tag)
        if not path.exists():
            raise Error(f"{path} is missing, the state of rank {of} of the {ranks} that have saved")
        return torch.load(path, map_location="cpu", weights_only=True, **_MAPPED)

    def parse(text):
        found = json.loads(text)
        return str(found["tag"]), int(found["ranks"])

    text, fault = tried(index) if rank == 0 else (b"", "")
    text = agreed(group, text, fault)[0]
    found, fault = tried(parse, text)
    if fault:
        raise Error(f"{folder / INDEX} is damaged: {fault}")
    tag, ranks = found
    saved, fault = tried(read, rank) if ranks == group.size() else tried(lambda: [read(each) for each in range(ranks)])
    return saved, ranks != group.size(), fault


def first_of(folders, group):
    """The first folder where a save has ended, as the first rank sees them; None where there is none. Collective."""
    mine = next((i for i, each in enumerate(folders) if (pathlib.Path(each) / INDEX).exists()), len(folders))
    return [*folders, None][int(agreed(group, str(mine).encode(), "")[0])]
