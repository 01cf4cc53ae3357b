# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The way of values from a device to the memory of the host, where the engine averages them, and back; and the engine of a device,
where there is one: it averages them where they are.

A device with events, streams and pinned memory copies while the program and the engine go on: a thread waits for each copy, and
the device's own queue orders the way back. Any other one copies while the program waits: slow, and as right."""

import atexit
import collections
import contextlib
import functools
import threading

import torch

from . import _engine

# What the tests have run an engine on, by its kind. Change it with docs/torch.md.
RUN_ON = {"cuda": "an emulator of CUDA, and no GPU", "hip": "nothing"}


class _Cuda:
    """The names of torch.cuda, which all releases have; also of ROCm."""

    def __init__(self, device):
        self.device = device

    def event(self):
        return torch.cuda.Event(blocking=True)  # a thread that waits leaves its core to the sums

    def stream(self):
        return torch.cuda.Stream(self.device)

    def current_stream(self):
        return torch.cuda.current_stream(self.device)

    def on(self, stream):
        return torch.cuda.stream(stream)


class _Accelerator:
    """The names for any device, from torch 2.6 on."""

    def __init__(self, device):
        self.device = device
        if torch.accelerator.current_accelerator().type != device.type:
            raise RuntimeError(f"{device} is not the accelerator of this process")

    def event(self):
        return torch.Event(self.device.type)

    def stream(self):
        return torch.Stream(self.device)

    def current_stream(self):
        return torch.accelerator.current_stream(self.device)

    @contextlib.contextmanager
    def on(self, stream):
        before = self.current_stream()
        torch.accelerator.set_stream(stream)
        try:
            yield
        finally:
            torch.accelerator.set_stream(before)


class Streams:
    """A stream of our own on a device, for all copies there. Raises where the device has no such things."""

    def __init__(self, device):
        self._names = (_Cuda if device.type == "cuda" else _Accelerator)(device)
        self._own, self._held, self._lock = self._names.stream(), collections.deque(), threading.Lock()
        self._waits = self._names.stream()
        self.is_ready().record(self._own)
        if not torch.empty(1, pin_memory=True, device="cpu").is_pinned():
            raise RuntimeError("there is no pinned memory")

    def is_ready(self):
        """An event behind what the program has given the device until now."""
        event = self._names.event()
        event.record(self._names.current_stream())
        return event

    def current(self):
        """Within it this thread gives the device its work on the stream of our own."""
        return self._names.on(self._own)

    def hold(self, tensor):
        """Keeps the tensor until what we have given the device is done: else its memory could go to another one. (Not by
        `record_stream`, which not every device has.) Looks at those of earlier calls, so the last one stays until the next."""
        done = self._names.event()
        done.record(self._own)
        with self._lock:
            self._held.append((done, tensor))
            while self._held[0][0].query() and len(self._held) > 1:
                self._held.popleft()

    def finish(self, wait):
        """Waits on the host for work that `wait()` lets the current stream wait for: one without work of ours, so that averages
        that go back do not wait with it."""
        there = self._names.event()
        with self._names.on(self._waits):
            wait()
            there.record(self._waits)
        there.synchronize()

    def read(self, tensor):
        """The numbers of a tensor that is there, without a wait for work of ours."""
        with self._names.on(self._waits):
            return tensor.tolist()

    def fetch(self, tensor, room):
        """Copies the values into the memory of the host; waits."""
        with self.current():
            room.copy_(tensor, non_blocking=True)
            there = self._names.event()
            there.record(self._own)
        there.synchronize()

    def in_order(self, tensor):
        """The values one after the other on the device: the tensor itself where they are so, else a copy; waits for that."""
        if tensor.is_contiguous() and not tensor.is_neg():
            return tensor
        with self.current():
            made = tensor.resolve_neg().contiguous()
            there = self._names.event()
            there.record(self._own)
        there.synchronize()
        return made


def wait_for(event):
    """The host waits, and not our stream: there averages that go back would wait behind gradients that are to come."""
    event.synchronize()


_streams = {}
_of_streams = threading.Lock()


def streams_of(device):
    """Those of a device; None for the host, and where copies have to wait."""
    if device.type == "cpu":
        return None
    with _of_streams:
        if device not in _streams:
            try:
                _streams[device] = Streams(device)
            except Exception:  # pylint: disable=broad-except  # what is missing is told in many ways
                _streams[device] = None
        return _streams[device]


@functools.lru_cache(maxsize=None)
def device_engine():
    """The engine of devices, or None, and in words why there is none. Loads it, once."""
    return _engine.find_device_engine()


def engine_of(device):
    """The engine of this device, which is started there, or None, and in words why there is none."""
    library, why = device_engine()
    if library is None:
        return None, why
    kind = "hip" if device.type == "cuda" and torch.version.hip else device.type
    if library.where != kind:
        return None, f"{library.path} is for {library.where}, and this is {device} of {kind}"
    if streams_of(device) is None:
        return None, f"{device} has no streams, no events or no pinned memory"
    try:
        library.check(library.initialize_on(device.index))
    except _engine.Error as error:
        return None, str(error)
    return library, ""


def about_device_engine():
    """For `build`."""
    if not torch.cuda.is_available():
        return "none: there is no GPU, by torch.cuda.is_available()"
    library, why = device_engine()
    if library is None:
        return f"none: {why}"
    return f"{library.where}, {library.path}: compiled and loaded; run on: {RUN_ON.get(library.where, 'nothing')}"


def of_future(tensor):
    """The devices of the future of a tensor: whoever reads its result on them waits for our stream."""
    return None if streams_of(tensor.device) is None else [tensor.device]


def fill(tensor, value):
    """Of a tensor whose device may have no streams: then a copy, which is waited for, as work there may not be."""
    if tensor.device.type == "cpu" or streams_of(tensor.device) is not None:
        tensor.fill_(value)
    else:
        tensor.copy_(torch.full_like(tensor, value, device="cpu"))


class Line:
    """Jobs of a group in the order in which they came: at once, or behind those that wait for a device, on a thread."""

    def __init__(self):
        self._jobs, self._changed, self._is_there = collections.deque(), threading.Condition(), False

    def do(self, job, failed, waits=False):
        """A job that `waits` is left to the thread; what it raises there to `failed`, which counts as the engine's callback."""
        with self._changed:
            if waits or self._jobs:
                self._jobs.append((job, failed))
                if not self._is_there:
                    atexit.register(self.wait)  # before the engine ends
                    threading.Thread(target=self._run, name="oktopk_torch copies", daemon=True).start()
                    self._is_there = True
                self._changed.notify_all()
                return
        job()

    def wait(self):
        """Until the jobs that have come are done. A callback must not wait, which the engine says."""
        if _engine.in_callback():
            return
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs)

    def _run(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._jobs)
                job, failed = self._jobs[0]
            try:
                job()
            except Exception as raised:  # pylint: disable=broad-except
                with _engine.calling_back():
                    failed(raised)
            del job, failed  # which hold tensors
            with self._changed:
                self._jobs.popleft()
                self._changed.notify_all()


class InOrder:
    """An averager of the engine, whose calls come behind those whose values are still under way from a device."""

    def __init__(self, of, line):
        self.of, self._line = of, line

    def backward_ended(self):
        self._line.do(self.of.backward_ended, lambda raised: None)

    def __getattr__(self, name):
        self._line.wait()
        return getattr(self.of, name)


class Rooms:
    """Pinned memory for the values of calls, by what is called, kept from step to step."""

    def __init__(self):
        self._free, self._used, self._lock = {}, {}, threading.Lock()

    def take(self, what, tensor):
        with self._lock:
            room = self._free.pop(what, None)
        if room is None or room.shape != tensor.shape or room.dtype != tensor.dtype:
            room = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu", pin_memory=True)
        with self._lock:
            self._used[id(room)] = room
        return room

    def give_back(self, what, room):
        """None is taken, and does nothing."""
        with self._lock:
            if self._used.pop(id(room), None) is not None:
                self._free[what] = room

    def keep_only(self, those):
        """Lets go what waits for other calls, as of buckets that are no more."""
        with self._lock:
            self._free = {what: room for what, room in self._free.items() if what in those}

    def bytes(self):
        with self._lock:
            return sum(each.numel() * each.element_size() for all in (self._free, self._used) for each in all.values())
