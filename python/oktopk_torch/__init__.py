# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse averages with error feedback for PyTorch: as a hook of DistributedDataParallel (DDP), and alone.

    state = oktopk_torch.attach(ddp, "ok_topk(density=0.01, format=packed)")

    average = oktopk_torch.averager(group, "ok_topk(density=0.01)")
    average(gradient, key="layer3")

Both are collective: all ranks make them, and call them in the same order. Any algorithm of oktopk's catalogue averages;
`density` is the share of entries that it selects. What is not selected stays in a residual and is added to the next gradient.
What goes wrong is an `Error`, on every rank."""

import collections
import contextlib
import datetime
import functools
import math
import operator
import sys
import weakref

try:
    import torch
except ImportError as missing:
    raise ImportError("oktopk_torch needs PyTorch 1.13 or newer, and this Python has none: pip install torch") from missing
_TORCH = tuple(map(int, torch.__version__.split(".")[:2]))  # that of a container is 2.4.0a0
if _TORCH < (1, 13):
    raise ImportError(f"oktopk_torch needs PyTorch 1.13 or newer, and this is {torch.__version__}")
import torch.distributed
if not torch.distributed.is_available():
    raise ImportError(f"oktopk_torch needs torch.distributed, which this PyTorch, {torch.__version__}, was built without")

from . import _adam, _ddp, _devices, _engine, _node, _saving, _sparse, _watch
from ._adam import AdamW
from ._engine import Error

__all__ = ["AdamW", "Error", "algorithms", "attach", "averager", "build", "density_schedule", "gathered", "hook", "sparse_sum", "state"]
__version__ = _engine.VERSION
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
_ELEMENTS = {torch.float32: _engine.FLOAT32, torch.float64: _engine.FLOAT64, torch.float16: _engine.FLOAT16,
             torch.bfloat16: _engine.BFLOAT16}
# DDP counts a use within `no_sync` as one of the next pass that it reduces (pytorch#124193).
DDP_COUNTS_WITHOUT_SYNC = _TORCH >= (2, 4)


def algorithms():
    """The algorithms of the catalogue: their names, and what each is."""
    return _engine.HOST.list_algorithms()


def build():
    """What this oktopk_torch is, and can do: for programs, and for reports of faults."""
    return {"version": __version__, "engine": _engine.PATH, "interface": _engine.ABI, "torch": torch.__version__,
            "device_engine": _devices.about_device_engine()}


class density_schedule:  # pylint: disable=invalid-name  # reads as a function where it is given
    """`density` after a `warm_up` of so many steps, which goes down from `initial` in `stages`, each the same factor
    sparser."""

    def __init__(self, density, initial=1, warm_up=0, stages=4):
        self._density, self._initial = float(density), float(initial)
        self._warm_up, self._stages = operator.index(warm_up), operator.index(stages)
        if not 0 < self._density <= 1:
            raise Error(f"oktopk: the density {self._density:.6f} is not in (0, 1]")
        if not self._density <= self._initial <= 1:
            raise Error(f"oktopk: the initial density {self._initial:.6f} is not in [density, 1]")
        if self._warm_up < 0 or self._stages < 1:
            raise Error("oktopk: a warm-up has 0 iterations or more, in 1 stage or more")

    def __call__(self, step):
        step = max(operator.index(step), 0)
        if step >= self._warm_up:
            return self._density
        stage = math.floor(float(step) * self._stages / self._warm_up)
        return self._initial * (self._density / self._initial) ** (stage / self._stages)


def _is_without_memory(tensor):
    """Whether native code finds no values behind it: DTensors, fake and functional tensors, those of vmap."""
    try:
        return tensor.numel() > 0 and tensor.data_ptr() == 0
    except (RuntimeError, NotImplementedError):
        return True


def _fault_of(what, tensor, types=TYPES):
    """Why it cannot be averaged, in words; empty where it can."""
    if not isinstance(tensor, torch.Tensor):
        return f"{what} is {tensor!r}" if tensor is None else f"{what} is of type {type(tensor).__name__}, and no tensor"
    if tensor.layout != torch.strided:
        return f"{what} is a sparse tensor; oktopk takes dense ones, and oktopk_torch.sparse_sum adds sparse ones"
    if tensor.device.type == "meta":
        return f"{what} lies on {tensor.device}, where no values are"
    if tensor.dtype not in types:
        return f"{what} is of type {tensor.dtype}, expected one of {', '.join(map(str, types))}"
    if tensor.is_nested or _is_without_memory(tensor):
        remedy = ": give its local part, to_local()" if hasattr(tensor, "to_local") else ""
        return f"{what} is a {type(tensor).__name__} without memory of its own{remedy}"
    return ""


def _values_in_order(tensor):
    """The values of a tensor, one after the other in the memory of the host: the tensor itself where they are so. (The memory
    of one with the negative bit has the values of another one.)"""
    if tensor.device.type == "cpu" and tensor.is_contiguous() and not tensor.is_neg():
        return tensor
    return tensor.resolve_neg().contiguous().cpu()


def _plain_key(key):
    """A key as a plain text or integer, which every checkpoint takes, and what is wrong with it."""
    if isinstance(key, str):
        return str(key), "a key has no character of the code 0" if "\0" in key else ""
    try:
        return operator.index(key), ""
    except TypeError:
        return "", f"a key is a text or an integer, and this one is of type {type(key).__name__}"


def _check_group(group):
    """An Error where it does not move tensors of the CPU, by the name of its backend."""
    remedy = "give one of gloo, new_group(backend='gloo')"
    if not hasattr(group, "_get_backend"):  # before torch 2
        if group.name() == "nccl":
            raise Error(f"a process group of nccl moves tensors of GPUs alone: {remedy}")
        return
    try:
        backend = group._get_backend(torch.device("cpu"))  # pylint: disable=protected-access
    except RuntimeError:
        raise Error(f"a process group of {group.name()} moves no tensors of the CPU: {remedy}") from None
    if type(backend).__module__.startswith("torchcomms"):
        raise Error(f"the process group of {group.name()} is one of torchcomms, whose waits have no time limit: "
                    "unset TORCH_DISTRIBUTED_USE_TORCHCOMMS")


def _time_limit(group):
    """That of a process group, for waits of its calls."""
    limit = torch.distributed.distributed_c10d.default_pg_timeout
    if not hasattr(group, "_get_backend"):  # before torch 2
        return getattr(getattr(group, "options", None), "_timeout", limit)
    for device in getattr(group, "_device_types", ()):
        try:
            return group._get_backend(device).options._timeout  # pylint: disable=protected-access
        except (AttributeError, RuntimeError):  # one of another make
            pass
    return limit


class _Store:
    """A store of torch, for the addresses of the ranks."""

    def __init__(self, store, limit):
        self._store, self._limit, self.set = store, limit, store.set

    def get(self, key):
        self._store.wait([key], self._limit)
        return self._store.get(key)


class _Exchange:
    """The same for a group without a store that is known: in one allgather of what each rank has set."""

    def __init__(self, group):
        self._group, self._own, self._all = group, b"", {}

    def set(self, key, data):  # one key each time that the ranks meet
        self._own, self._all = key.encode() + b"\0" + data, {}

    def get(self, key):
        if not self._all:
            for each in _saving.of_all_ranks(self._group, self._own):
                name, _, data = each.partition(b"\0")
                self._all[name.decode()] = data
        return self._all[key]


class _Company:
    """What the averagers of a process group share: how many there are, and the engine's group, with connections of its own.

    They call nothing of the process group, so nothing that the program or DDP calls meanwhile can be taken for it. Made by all
    ranks of the group together."""

    # By group; a module that is loaded again goes on with those that are there.
    of = globals()["_Company"].of if "_Company" in globals() else weakref.WeakKeyDictionary()
    times = globals()["_Company"].times if "_Company" in globals() else collections.Counter()  # by the names of groups

    def __init__(self, rank, size, name, store, limit):
        self.made, self.line = 0, _devices.Line()
        self._ranks, self._limit, self._store, self._on_device, self._agreement = (rank, size, name), limit, store, None, None
        self.group = self._met(name, _engine.HOST)

    def _met(self, name, library):
        rank, size, _ = self._ranks
        try:
            return _engine.Group(rank, size, name, self._store, min(self._limit / datetime.timedelta(seconds=1), 1e9), library)
        except Error:
            raise
        except Exception as error:  # pylint: disable=broad-except  # of the store, as its time limit
            raise Error(f"the other ranks of the group have not come within {self._limit}: a state, and an averager, is collective, "
                        f"so each rank makes it ({error})") from None

    def group_on(self, library):
        """The same ranks for the engine of a device. Collective."""
        if self._on_device is None:
            self._on_device = self._met(f"{self._ranks[2]} on devices", library)
        return self._on_device

    def lacking(self, lacks):
        """The ranks that lack something. Collective."""
        rank, size, _ = self._ranks
        if self._agreement is None:
            self._agreement = _node.Agreement(self)
        return [each for each, does in enumerate(self._agreement.of(*(lacks and each == rank for each in range(size)))) if does]

    @classmethod
    def of_group(cls, group):
        """That of a process group, which the first one who asks makes."""
        if group not in cls.of:
            cls.of[group] = cls.among(group, group.rank(), group.size())
        return cls.of[group]

    @classmethod
    def among(cls, group, rank, size, part=""):  # pylint: disable=protected-access
        """A new one of a part of the ranks of a process group, by its name, or of all of them. Made by all ranks of the group."""
        limit, name, c10d = _time_limit(group), part, torch.distributed.distributed_c10d
        if group.size() == 1:
            store = None
        elif group in c10d._pg_names and c10d._get_default_store() is not None:  # there is none with MPI
            # Not the name alone: a group that was destroyed leaves its addresses in the store.
            name = f"oktopk_torch {cls.times[c10d._pg_names[group]]} beside {c10d._pg_names[group]}{part}"
            store = _Store(c10d._get_default_store(), limit)
            cls.times[c10d._pg_names[group]] += 1
        else:
            _check_group(group)
            store = _Exchange(group)
        return cls(rank, size, name, store, limit)


def _met(group):
    """The ranks, which tell their number and this one, and what their averagers share."""
    group = torch.distributed.group.WORLD if group is None else group
    if not isinstance(group, torch.distributed.ProcessGroup):
        raise Error("there is no process group, or this rank is not in it: call torch.distributed.init_process_group first")
    return group, _Company.of_group(group)


def sparse_sum(tensor, group=None):
    """The sum over the ranks of a tensor that is sparse already, without loss: coalesced, the same bits on all ranks.

    Collective, in the order of other calls of the group. `tensor` is one of `torch.sparse_coo_tensor`, coalesced or not; each rank
    has another number of entries, or none. Its shape, type and number of sparse dimensions are the same on all ranks; dense
    dimensions behind these are rows, which are sent whole. Types are float32, float64, int32, int64, complex64 and complex128.
    `group` is a process group of any backend, or None for the default one. The result is a new tensor, on the device of the given
    one, with each index that some rank has; no gradient goes through it. The cores of the host sum: a tensor of a device is copied
    there and back, and the program waits.

    Costs what docs/sparse.md says, and ceil(log2 P) messages of 4 words in which ranks compare shapes and types. With several
    sparse dimensions the engine sees one, of their product. Buffers stay for the next sum of the same shape and type, up to a dense
    array of the indices that this rank sums. What is wrong on some rank, and ranks that differ, are an `Error` on all; no entry was
    sent then."""
    _, company = _met(group)
    company.line.wait()
    return _sparse.summed(company.group, tensor, "the tensor")


class _Kept:
    """The first error of a step, kept until DDP has ended its backward pass."""
    text = ""


class averager:  # pylint: disable=invalid-name  # reads as a function where it is called
    """Averages of tensors over the ranks of a process group, each key with a residual of its own.

    Collective. `scheme` is NAME or NAME(KEY=VALUE, ...) of the catalogue; one that selects has a `density` in (0, 1], 0.01
    unless given. `group` says who the ranks are, of any backend; the default group where it is None. Messages go over
    connections of our own (GLOO_SOCKET_IFNAME names the network interface). Sums and residuals are of type `dtype`,
    float32 or float64, in the memory of the host; float32 takes float16 and bfloat16 as well. Tensors may lie on a device.

    With `device`, on all ranks or on none, all tensors lie there, and where each rank has the engine of its device (the package
    oktopk_torch_cuda), residuals and sums do, too, and it selects: only entries cross the bus. `report` says where it is done.

    Calls up to the next one of a key that was called already are a step. Where a call fails, all calls of its step are
    taken back: apply none of their averages. So sums that are applied apart, as of two models, have an averager each.

    `momentum` in [0, 1), and Nesterov's where `nesterov` is set, is that of tensors before their residual (momentum
    correction and factor masking, Lin et al. 2018): for an optimizer that has none of its own, in place of it.
    `clip_norm` is the largest norm of a rank's own tensor, before its residual. `residual_decay` b in [0, 1] makes the
    residual e <- b e + g, as DeMo and SparseLoCo have it. `density` takes the place of the scheme's: a number, or a
    function of the step such as `density_schedule`, the same on all ranks; steps of an averager are the calls of a key.

    With `adam`, a pair (beta2, epsilon) such as (0.999, 1e-8), residuals and averages are of directions, gradients over the root of
    their second moment: for `AdamW`, whose step is then exact in the order of sums, and for no optimizer that divides again. Second
    moments are of the rows and columns of each tensor, the same on all ranks by a small dense sum in each call. No momentum."""

    _is_of_ddp = False
    _shapes = ()  # of tensors that have numbers, as their values lie in memory
    _orders = ()  # of values in memory, for each tensor: those of an averager are copied into the usual one
    _started = 0  # calls
    _kept = _Kept()  # of the last step
    _whats = frozenset()  # its calls, for memory that is kept for them
    _node, _sparse = None, {}
    _device, _on_host = None, ""  # where all tensors lie, None where nobody asks; why the host averages them
    _library = None  # of that device; None for the host

    def __init__(self, group=None, scheme="ok_topk", *, dtype=torch.float32, device=None, **options):
        fault = "" if dtype in (torch.float32, torch.float64) else f"dtype = {dtype} is neither float32 nor float64"
        if device is not None:
            self._device, wrong = _saving.tried(lambda: torch.empty(0, device=device).device)
            self._device, fault = self._device or torch.device("cpu"), fault or wrong
        self._begin(group, scheme, dtype, fault, [], [], **options)

    def _begin(self, group, scheme, dtype, fault, names, lengths, gives=_engine.GIVES_ERROR, *, momentum=0.0,
               nesterov=False, clip_norm=0.0, residual_decay=1.0, density=None, adam=None):
        self.dtype, self.density, self._was_set = dtype, density, None
        self._group, self._company = self._meet(group)
        self._company.line.wait()  # ranks make it behind the same calls, those whose values are under way from a device, too
        self._names, self._steps = list(names), {"": 0} if names else {}  # steps: of each key
        self._keys, self._step = {}, set()  # by their texts; those of the step that may go on
        self._types = TYPES if dtype == torch.float64 else TYPES[:3]
        if not isinstance(scheme, str):
            scheme, fault = "dense", f"the scheme {scheme!r} is no text"
        scheme = self.scheme = str(scheme)
        self.adam, wrong = _adam.parsed(adam)
        fault = fault or wrong
        if adam is not None and self._node is not None:
            fault = fault or "adam is not for a node_group: ranks of a node have shares of tensors, and second moments are of whole rows"
        if self._device is not None:
            self._choose_engine()
        of = self._company.group if self._library is None else self._company.group_on(self._library)
        self._company.made += 1
        self._number = self._company.made
        self._of_skipped = 0.0 if gives == _engine.GIVES_ZEROS else math.inf
        self._rooms = _devices.Rooms()
        make = functools.partial(
            _engine.Averager, of, scheme, dtype == torch.float64, self._names, lengths, gives, fault,
            momentum=momentum, nesterov=nesterov, clip_norm=clip_norm, residual_decay=residual_decay, adam=self.adam,
            shapes=self._shapes)
        made = make() if self._node is None else self._node.agreed(make)
        self._native = _devices.InOrder(made, self._company.line)
        if density is not None:  # what is wrong with it is said here
            self._native.set_density(float(density(0) if callable(density) else density))
        _adam.add(self)

    def _parameters(self):
        """Those whose gradients it averages, where it knows them."""
        return ()

    def _choose_engine(self):
        """That of the device where every rank has it, else the host's. Collective."""
        library, why = None, self._on_host
        if self._device.type != "cpu" and not why:
            library, why = _devices.engine_of(self._device)
        name = self.scheme.partition("(")[0].strip()
        if library is not None and self.dtype != torch.float32:
            why = f"sums are of {self.dtype}, and a device has those of float32"
        elif library is not None and name not in library.list_algorithms():
            why = f"the engine of the device has no {name}"
        lacking = (self._company if self._node is None else self._node).lacking(library is None or bool(why))
        if not lacking:
            self._library = library
        elif self._device.type != "cpu":
            self._on_host = why or f"rank {lacking[0]} has no engine of a device"

    def _meet(self, group):
        return _met(group)

    def __call__(self, tensor, key, *, async_op=False):
        """Makes a tensor its average over the ranks, in place; gives the tensor, or a future of it with `async_op`.

        Collective. Calls come in the same order on all ranks. `key`, a text or an integer, says whose residual is added: each
        tensor of a model has its own, with the same number of values in each call. Each call compares its key on all ranks
        first, in ceil(log2 P) messages of 4 words."""
        if not async_op and _engine.in_callback():
            self._native.words_sent()  # the engine says that it would wait for itself
        key, fault = _plain_key(key)
        if self._keys.setdefault(str(key), key) != key:
            fault = f"there are two keys {key}, a text and an integer"
        fault = fault or _fault_of(f"the tensor of key {key!r}", tensor, self._types)
        if self._library is not None and not fault and tensor.device != self._device:
            fault = f"the tensor of key {key!r} lies on {tensor.device}, and those of this averager on {self._device}"
        continues = bool(self._step) and key not in self._step
        if not continues:
            self._step = set()
        self._step.add(key)
        buffer = torch.empty(0, device="cpu") if fault else tensor.detach() if tensor.requires_grad else tensor
        failed, devices = functools.partial(self._failed, key, self._step), _devices.of_future(buffer)
        future = _Future(failed, devices) if async_op or devices else None
        text = self._start(future, buffer, [], str(key), [], fault, key, f"key {key!r} of averager {self._number}",
                           continues=continues)
        if text:
            raise failed(text)
        if async_op:
            return future
        if future is not None:
            future.wait()
        return tensor

    average = __call__

    def _failed(self, key, step, error):
        """The error of a call, which ends its step."""
        if self._step is step:
            self._step = set()
        others = sorted(map(repr, step - {key}))
        return Error(f"{error}{'; taken back with it: the calls of this step of ' + ', '.join(others) if others else ''}")

    def _start(self, future, buffer, tensors, text, used, fault, key, subject, *, reordered=(), is_first=True, is_last=True,
               continues=False, loss_scale=1.0, keeps_error=False, within=None):
        """A call, which completes the future. Where that is None it waits, and gives the sentence of its error. `within` a node it
        is of the share of a bucket.

        Most functions of torch give the lock of Python away, and beside a thread that computes in Python it takes 5 ms to get it
        back: none is called here that need not be, and the completion of a future and a wait for it are two."""
        step, density = self._steps.get(key, 0), None
        if is_first:
            density, failed = _called(f"the density of step {step}", self.density, step)
            fault = fault or failed
        self._started += 1
        how = {"tensors": tensors, "key": text, "used": used,
               "reordered": [(number, places.data_ptr()) for number, places in reordered], "subject": subject,
               "is_first": is_first, "is_last": is_last, "continues": continues, "loss_scale": loss_scale, "density": density}
        if self.adam is not None and not tensors:
            how["shape"] = list(buffer.shape)
        kept, what = self._kept if keeps_error else None, (tuple(tensors), text)
        streams = _devices.streams_of(buffer.device)
        ready = None if streams is None else streams.is_ready()

        def bring(_places=reordered):  # whose memory is read here
            values, wrong = None, fault
            try:
                if within is not None:
                    within.finish()
                elif streams is not None:
                    _devices.wait_for(ready)
                if not wrong and self._library is not None:
                    values = streams.in_order(buffer)
                elif not wrong and streams is not None:
                    values = self._rooms.take(what, buffer)
                    streams.fetch(buffer, values)
                elif not wrong:
                    values = _values_in_order(buffer)
                if within is not None and values is not None:
                    how["used"] = within.used(values)
            except Exception as raised:  # pylint: disable=broad-except  # the other ranks make this call
                self._rooms.give_back(what, values)
                values, wrong = None, _first_line(raised)
            length = buffer.numel() if within is None else within.length
            given = (None if values is None else values.data_ptr(), length, _ELEMENTS.get(buffer.dtype, _engine.FLOAT32))
            if future is not None:
                end = functools.partial(self._end, future, buffer, values, kept, streams, what)
                self._native.of.arrive(*given, done=end if within is None else within.heard(end), fault=wrong, **how)
                return ""
            text = ""
            try:
                self._native.average(*given, fault=wrong, **how)
            except Error as error:
                text = str(error)
            return self._give_back(buffer, values, kept, streams, what, text)

        text = ""
        if future is None:
            text = bring()
        else:
            self._company.line.do(bring, lambda raised: self._end(future, buffer, None, kept, streams, what, str(raised)),
                                  waits=streams is not None or within is not None)
        self._whats = {what} if is_first else self._whats | {what}
        if tensors and is_last:
            self._rooms.keep_only(self._whats)
        self._steps[key] = step + is_last
        return text

    def _give_back(self, buffer, values, kept, streams, what, text):
        """Puts the averages of a call into the tensor, where they are not there yet; gives the sentence of its error."""
        try:
            if text and kept is not None:
                _devices.fill(buffer, 0)
            elif text:
                pass
            elif values is None:  # of a step that is skipped
                _devices.fill(buffer, self._of_skipped)
            elif values is not buffer:
                # An inference tensor can only be changed in this mode; threads of a device need not be in it.
                with torch.inference_mode(streams is None or buffer.is_inference()):
                    buffer.copy_(values, non_blocking=streams is not None)
            if streams is not None and (text or values is not buffer):  # else the engine has ended all work on it
                streams.hold(buffer)
        except Exception as raised:  # pylint: disable=broad-except  # of this rank alone: residuals are as after the step
            text = text or f"oktopk: the copy of an average: {_first_line(raised)}"
        self._rooms.give_back(what, values)
        return text

    def _end(self, future, buffer, values, kept, streams, what, text):
        """The end of a call, on a thread of the engine: completes the future. With `kept` it has no error, and the buffer has
        zeros: DDP does not end a backward pass in order where a future has an error, and a callback of the future that moves
        weights must move none."""
        with contextlib.ExitStack() as within:
            try:
                if streams is not None:  # a future of a device keeps an event of the stream that is current when it is completed
                    within.enter_context(streams.current())
            except Exception as raised:  # pylint: disable=broad-except
                text = text or f"oktopk: the stream of an average: {_first_line(raised)}"
            text = self._give_back(buffer, values, kept, streams, what, text)
            if text and kept is None:
                future.set_exception(Error(text))
                return
            if text:
                kept.text = kept.text or text
            future.set_result(buffer)

    def set_density(self, density):
        """Another density from now on, in (0, 1], instead of the scheme's and of a schedule. Collective, between steps."""
        self._native.set_density(float(density))
        self.density = self._was_set = float(density)

    def undo(self):
        """Takes the last step back: residuals and velocities are as before it. Collective, between steps.

        For a step whose averages the program throws away: it skips the optimizer's step, goes back to old weights, or calls
        zero_grad after the pass of another loss. Without it error feedback holds what was sent for applied, and brings what
        was not sent into later steps. Once a step; nothing where the step has failed or was skipped, which has taken it
        back; an `Error` where there is none to take back."""
        self._native.undo()
        self._step = set()

    def last_step(self):
        """Figures of the last step, on this rank: its `step_values`, `words` of 4 bytes that were sent, `seconds` of
        communication, `hidden_seconds` of them behind the backward pass and the `hideable_seconds` that could have been,
        `was_skipped`; of all `steps`: how many were `skipped`; and the `buckets` with their `values`, those `selected` in a
        step, `density` and `ranks`. Waits for what is under way."""
        return self._native.last_step()

    def residual_norm(self):
        """The Euclidean norm of this rank's residuals."""
        return self._native.residual_norm()

    def words_sent(self):
        """Words of 4 bytes that this rank has sent for it, as oktopk counts."""
        return self._native.words_sent()

    def report(self):
        """What really runs, and what it costs, as a text."""
        last, lines = self.last_step(), []
        for each in self._native.schemes():
            lines += [f"  bucket {len(lines)}: {each}"]
        dense = 2 * torch.finfo(self.dtype).bits / 8 * last["step_values"] * (last["ranks"] - 1) / last["ranks"]
        ratio = f"{4 * last['words'] / dense:.3g} of a dense ring's" if dense > 0 else "and none is to be sent"
        hidden = last["hidden_seconds"]
        return "\n".join([
            f"oktopk_torch {__version__}: {self.scheme}, {last['ranks']:.0f} ranks, sums of {self.dtype}, "
            f"{last['steps']:.0f} steps, {last['skipped']:.0f} of them skipped",
            f"last step: {4 * last['words']:.0f} bytes sent by this rank, {ratio}; {last['seconds']:.6f} s of communication, "
            f"{hidden:.6f} s hidden behind the backward pass and {last['seconds'] - hidden:.6f} s not",
            *lines,
            *([f"  directions for AdamW: beta2 {self.adam[0]:g}, epsilon {self.adam[1]:g}"] if self.adam is not None else []),
            *([f"  {self._node.says()}"] if self._node is not None else []),
            *([f"  beside them sums of sparse gradients, without loss: {', '.join(self._sparse.values())}"] if self._sparse else []),
            *([f"  selection on {self._device}, by the engine of {self._library.where}"] if self._library is not None else []),
            *([f"  selection on the host: {self._on_host}"] if self._on_host else []),
            *([f"  {self._rooms.bytes()} bytes of pinned memory"] if self._rooms.bytes() else [])])

    def state_dict(self):
        """All of this rank's state, for `torch.save` and torch's distributed checkpoint. In the middle of a backward pass that
        from before it, as the weights are.

        A program that loads it, with the same model and number of ranks, goes on to the bit as the one that saved it,
        where that one had done two iterations or more, or three with `static_graph`: DDP builds other buckets after its
        first, or second. "state" has under the name of the rank a tensor of bytes, which `oktopk::save` writes in C++ for
        buckets over an algorithm by its name, as `data_parallel` makes them."""
        if sys._getframe(1).f_globals.get("__name__") == "accelerate.checkpointing":  # pylint: disable=protected-access
            raise Error("Accelerate saves the state of one rank, and residuals differ by rank: give register_for_checkpointing "
                        "oktopk_torch.gathered(state)")
        saved, rank = [], self._group.rank()
        self._native.save(lambda size: saved.append(torch.empty(size, dtype=torch.uint8, device="cpu")) or saved[0].data_ptr())
        names, lengths = self._native.tensors()
        # For torch's distributed checkpoint, which keeps one of each name, and loads a tensor into one of the same length: a name
        # for each rank, and a tuple, into which it does not look.
        return {"scheme": self.scheme, "parameters": [self._keys.get(name, name) for name in names],
                "state": {f"{_RANK}{rank}": (saved[0],)}, "lengths": lengths, "steps": list(self._steps.items()),
                "density": None if self._was_set is None else repr(self._was_set),  # a text: 1.13 loads no float
                "ranks": self._group.size(), "orders": list(self._orders),
                **({} if self._node is None else {"nodes": self._node.nodes})}

    def __reduce__(self):
        """Copied and pickled as what `state_dict` gives: newer releases of torch keep the state of a hook in the DDP module."""
        return collections.OrderedDict, (() if "_native" not in self.__dict__ else (list(self.state_dict().items()),))

    def load_state_dict(self, saved, other_ranks=False, partial=False):
        """Goes on from what `state_dict` gave on the same rank. Collective; an `Error` on every rank where it does not
        fit on one of them, and then nothing has changed. Every rank loads its own: residuals differ by rank.

        With `partial` the parameters of a model may be others than those that were saved: each that is in both goes on
        with its residual, and the states of the algorithm begin anew.

        With `other_ranks` the number of ranks is another one than that which has saved, and `saved` is the list of the
        states of all of those ranks, in their order: each rank takes its share of the residuals, so that none is lost.
        One state in place of the list is what this rank takes, and the others are lost."""
        self._load(saved, other_ranks, partial)

    def save(self, folder):
        """Saves the states of all ranks in a folder, which is made where it is not there: a file a rank, and oktopk.json.

        Collective, between steps. A save that is killed leaves the one before: oktopk.json names the files, and is written
        last. What cannot be written on one rank is an `Error` on every rank."""
        _saving.save(folder, self._group, self.state_dict)

    def load(self, folder, partial=False):
        """Goes on from what `save` has left in a folder, on any number of ranks.

        Collective. Each rank reads its own file, or on another number of ranks those of all that have saved. What is missing
        or does not fit is an `Error` on every rank, which names it, and then nothing has changed. `partial` is that of
        `load_state_dict`."""
        saved, other_ranks, fault = _saving.load(folder, self._group)
        self._load(saved, other_ranks, partial, fault)

    def _load(self, saved, other_ranks, partial, fault=""):
        rank, ranks, is_state = self._group.rank(), self._group.size(), self._is_of_ddp
        is_list = isinstance(saved, (list, tuple))
        every = list(saved) if is_list else [saved]
        states, names, steps = [], [], {}
        density, saved_by, share, given = None, -1, 1.0 if other_ranks else None, fault
        try:
            first = every[0]
            before = first.get("ranks", ranks)
            # Residuals of one share add up; without nodes all are of one.
            nodes, saved_nodes = _node.of_ranks(ranks, self._node and self._node.nodes), _node.of_ranks(before, first.get("nodes"))
            number, share_of_node = next((i, each.index(rank)) for i, each in enumerate(nodes) if rank in each)
            of_share = [every[each[share_of_node % len(each)]] for each in saved_nodes if len(every) == before] or every
            mine = (of_share[number::len(nodes)] or of_share[:1]) if other_ranks and is_list else every
            first = mine[0]
            of_ranks = [_bytes_of(each) for each in mine]
            if any(each.device.type == "meta" for _, each in of_ranks):
                raise ValueError("it lies on meta, where no values are")
            states, names = [each.detach().cpu().contiguous() for _, each in of_ranks], list(first["parameters"])
            strange = [each for each in states if each.dtype != torch.uint8]
            states = [] if strange else states
            density = None if first.get("density") is None else float(first["density"])
            steps = dict(first.get("steps", {}))
            ordered = dict(zip(self._names, self._orders))
            if other_ranks:
                share = 0.0 if is_list and number >= len(saved_nodes) else len(nodes) / len(saved_nodes)
            saved_by = -1 if other_ranks and is_list else of_ranks[0][0]
            if not -1 <= of_ranks[0][0] < min(before, 2 ** 31):
                raise ValueError(f"rank {of_ranks[0][0]} of {before}")
            if is_state:
                names, steps = [_plain(each) for each in names], {"": max(steps.values(), default=0)}
            moved = [name for name, order in zip(names, first.get("orders", ())) if ordered.get(name, order) != order]
            if is_state and names != self._names and not partial:
                others = sorted(set(names) ^ set(self._names), key=str) or "they have another order"
                fault = f"the parameters of the saved state and of the model do not fit: {others} (partial=True takes what both have)"
            elif strange:
                fault = f"the tensor holds elements of type {strange[0].type().split('.')[-1][:-6]}, expected Byte"
            elif moved:
                fault = f"the values of {moved} lie in another order in memory (memory_format) than those that were saved"
            elif len(saved_nodes[0]) != len(nodes[0]) or (before == ranks and not other_ranks and saved_nodes != nodes):
                fault = (f"the saved state is of the nodes {saved_nodes}, and there are {nodes}: residuals are of a share of each tensor, "
                         "which each rank of a node has")
            elif before != ranks and not other_ranks:
                fault = f"the saved state is of {before} ranks, and there are {ranks}: load_state_dict(..., other_ranks=True)"
            elif other_ranks and is_list:
                fault = next((f"the saved state at place {i} is of rank {by}: the list has the state of each rank, in their order"
                              for i, (by, _) in enumerate(map(_bytes_of, every)) if by not in (-1, i)), "")
                if len(every) != before:
                    fault = fault or f"the list has {len(every)} states, and {before} ranks have saved"
            elif len(every) > 1:
                fault = f"a list of {len(every)} states is for other_ranks=True: else each rank loads its own state"
            elif saved_by not in (-1, rank) and not other_ranks:
                fault = (f"the saved state is of rank {saved_by}, and this is rank {rank}: residuals differ by rank, so each "
                         "rank saves and loads its own state")
        except Exception as wrong:  # pylint: disable=broad-except  # of this rank alone: others hear of it
            fault, saved_by = f"the saved state is none of oktopk_torch: {wrong!r}", -1
        fault = given or fault
        room = torch.empty(1, dtype=torch.uint8, device="cpu")  # no bytes have no address
        self._native.load([((each if each.numel() else room).data_ptr(), each.numel()) for each in states],
                          list(map(str, names)), fault, share, bool(is_state and partial), saved_by, self._steps_of_borders(), density)
        self._steps = steps
        self._step = set()
        if not is_state:
            self._keys = {str(name): name for name in names}
        if density is not None:
            self.density = self._was_set = density
        if is_state:
            self._watch.was_loaded = True

    def _steps_of_borders(self):
        return 1


class gathered:  # pylint: disable=invalid-name  # reads as a function where it is given
    """The states of all ranks of a `state` or an averager as one state dict, which is the same on every rank.

    For what keeps one copy for all ranks, as Accelerate's register_for_checkpointing(gathered(state)), and for torch's
    distributed checkpoint where another number of ranks may load it. Each rank holds in memory what all ranks have saved. Both
    calls are collective, on the process group of the state and between steps; an `Error` comes on every rank."""

    def __init__(self, of):
        if not isinstance(of, averager):
            raise Error(f"oktopk_torch.gathered takes a state or an averager, and not {of!r}")
        self._of = of

    def state_dict(self):
        data, fault = _saving.tried(_saving.to_bytes, self._of.state_dict)
        every = _saving.agreed(self._of._group, data, fault)  # pylint: disable=protected-access
        return {"every": tuple(map(_saving.from_bytes, every))}  # a tuple, into which torch's distributed checkpoint does not look

    def load_state_dict(self, saved):
        """Goes on from what `state_dict` gave on this or another number of ranks."""
        every = saved.get("every") if isinstance(saved, dict) else None
        every = every if isinstance(every, (list, tuple)) else ()
        rank, ranks = self._of._group.rank(), self._of._group.size()  # pylint: disable=protected-access
        if len(every) in (0, ranks):
            self._of.load_state_dict(every[rank] if every else None)
        else:
            self._of.load_state_dict(every, other_ranks=True)


class state(averager):  # pylint: disable=invalid-name  # reads as a function where a hook is registered
    """What `hook` carries from one iteration to the next: residuals and the states of the algorithm, by parameter.

    Collective. `model` is the DDP module, whose process group is used, or a wrapper of it (torch.compile, Fabric), or the
    module inside together with `process_group`. A state of the module inside that
    is made before `torch.distributed.init_process_group` uses the default group, from its first use on, and looks for the
    DDP module in its first backward pass: a DDP of other ranks is an `Error` there. Sums are of float64 where a parameter
    is. Where all parameters lie on one device, and each rank has the engine of its device, it averages there, as `averager` does with
    `device`. Scheme and options are those of `averager`; `clip_norm` is that of all gradients of a rank together. With momentum, a
    gradient that is there already when a pass begins is an `Error`: the velocity would take it twice.

    With `node_group`, of the ranks of this rank's machine and used for nothing else, they sum densely, and each averages its share of
    every tensor with the ranks of the same share on other machines: residuals are of a share. All machines have as many ranks.

    A gradient of `nn.Embedding(sparse=True)` or `nn.EmbeddingBag` is averaged without loss and without a residual, as `sparse_sum`
    adds: scheme, density, momentum, figures and saved states are of the dense ones. One that is not finite on some rank is an
    `Error`. It takes no `adam`, `clip_norm`, `node_group`, `grad_scaler` or `skip_step_on_fault`.

    With `grad_scaler` (as torch.cuda.amp's), residuals have no scale, and gradients that are not finite on some rank are
    infinities on all, in place of an error: the scaler skips the step, and residuals are as before. With
    `skip_step_on_fault` they are None, and any optimizer skips the step; `last_step()["was_skipped"]` tells."""

    _is_of_ddp = True
    _was_taken_back = _was_skipped = False  # the last step, by the ranks of the node
    _came, _fails_sparse = {}, False  # how many dense tensors each bucket of the pass has; whether a sparse gradient of it has failed

    def __init__(self, model, scheme="ok_topk", process_group=None, *, grad_scaler=None, skip_step_on_fault=False, node_group=None,
                 **options):
        ddp = _ddp.inside(model)
        named, sparse, faults = _reduced_parameters(model, ddp)
        self._sparse = {each: name for name, each in sparse}
        self._index = {each: i for i, (_, each) in enumerate(named)}
        self._orders = [_order(each.shape, _strides(each)) for _, each in named]
        self._shapes = [_adam.shape_in_memory(each.shape, _strides(each)) for _, each in named]
        self._scaler = grad_scaler if grad_scaler is not None and getattr(grad_scaler, "is_enabled", lambda: True)() else None
        gives = _engine.GIVES_ZEROS if skip_step_on_fault else _engine.GIVES_ERROR
        gives = gives if self._scaler is None else _engine.GIVES_INFINITIES
        self._skips = gives == _engine.GIVES_ZEROS
        dtype = torch.float64 if any(each.dtype == torch.float64 for _, each in named) else torch.float32
        self._seeks_ddp, self._has_own_group = ddp is None, process_group is not None
        group, fault = ddp.process_group if process_group is None and ddp else process_group, next(filter(None, faults), "")
        lengths = [each.numel() for _, each in named]
        asked = {"adam": options.get("adam") is not None, "clip_norm": options.get("clip_norm", 0) != 0, "node_group": node_group is not None,
                 "grad_scaler": self._scaler is not None, "skip_step_on_fault": bool(skip_step_on_fault)}
        strange = [what for what, is_asked in asked.items() if is_asked and sparse]
        if strange:
            fault = fault or f"{strange[0]} is not for a sparse gradient, as that of {sparse[0][0]}: leave it out, or set sparse=False"
        if node_group is not None:
            self._node = self._node_of(group, node_group, [each for _, each in named], options.pop("clip_norm", 0.0), fault)
            lengths = list(map(self._node.length_of, lengths))
        devices = sorted({each.device for _, each in named}, key=str)
        self._device = max(devices, key=lambda each: each.type != "cpu", default=torch.device("cpu"))
        if len(devices) > 1:
            self._on_host = f"the parameters lie on {', '.join(map(str, devices))}"
        begin = functools.partial(self._begin, group, scheme, dtype, fault, [name for name, _ in named], lengths, gives,
                                  **options)
        if ddp or process_group is not None or torch.distributed.is_initialized():
            begin()
        else:
            self._begins_later = begin
        self._watch = _watch.Watch(self._index)
        self._uses = _uses(ddp, named, options.get("momentum", 0) != 0, weakref.WeakMethod(self._hear))
        weakref.finalize(self, self._uses.end).atexit = False
        if hasattr(model, "_trainer"):  # a LightningModule
            model.register_forward_pre_hook(_ddp.RegistersForLightning(self))

    @staticmethod
    def _node_of(group, node_group, parameters, clip_norm, fault):
        """The node of this rank, with the connections of its share to other nodes, and those within the node."""
        group = torch.distributed.group.WORLD if group is None else group
        if not 0 <= clip_norm < math.inf:
            fault = fault or f"clip_norm = {clip_norm} is no norm"
        kinds = dict.fromkeys((each.device, each.dtype) for each in parameters)
        return _node.Node(group, node_group, kinds, clip_norm, fault, functools.partial(_Company.among, group))

    def _parameters(self):
        return self._index

    def _meet(self, group):
        return super()._meet(group) if self._node is None else (self._node.all, self._node.between)

    def __getattr__(self, name):  # what `_begin` makes, of a state from before there was a process group
        if name.startswith("__") or "_begins_later" not in self.__dict__:
            raise AttributeError(name)
        self._begins_later()
        del self._begins_later
        return getattr(self, name)

    def _hear(self, i, parameter):
        if not self._watch.has_begun:
            self._watch.see_gradient(i, parameter, self)

    def undo(self):
        if not self._was_taken_back and self._names:  # sparse gradients leave nothing behind
            super().undo()

    def last_step(self):
        figures = super().last_step()
        figures["was_skipped"] = max(figures["was_skipped"], float(self._was_skipped))
        return figures

    def start(self, bucket):
        """Starts the allreduce of a bucket in the background; gives the future of its averages."""
        return self._reduce(bucket)

    def _reduce(self, bucket, fault=""):
        if not self._watch.has_begun:
            self._watch.see_bucket()
        given, buffer = bucket.parameters(), bucket.buffer()
        sparse = self._sparse.get(given[0])  # its name: DDP gives it a bucket of its own
        parameters = [self._index.get(each) for each in given] if sparse is None else []
        fault = fault or (_fault_of("a bucket's gradient", buffer) if sparse is None else "")
        if None in parameters:
            strange = next(each for each, number in zip(given, parameters) if number is None)
            parameters = [0] if self._names else []  # a call has some; with a fault any will do
            fault = (f"a parameter of the bucket, of shape {tuple(strange.shape)}, is not of the module that the state was made for, or "
                     "did not require a gradient then: make the state of the DDP module, anew")
        if self._seeks_ddp:
            self._seeks_ddp = False
            self._find_ddp()
        reordered, moved = self._reordered(given, parameters, buffer) if parameters and not _fault_of("", buffer, TYPES) else ([], "")
        fault = fault or moved
        if self.adam is not None and bucket.index() == 0:
            fault = fault or _adam.refused(self._steps.get("", 0), lambda: _watch.optimizers_with_steps(self._index))
        is_first, is_last = bucket.index() == 0, bucket.is_last()
        if is_first:
            self._kept, self._came, self._fails_sparse = _Kept(), {}, False
        # Once a step: to read that of a device takes a wait for it.
        scale, failed = _called("the scale", self._scaler.get_scale) if is_first and self._scaler is not None else (1.0, "")
        if is_first:
            self._in_backward = _at_end_of_backward(self._native.backward_ended)
        if is_last and self._in_backward:
            _at_end_of_backward(lambda: _at_end_of_backward(self._ended))  # behind what DDP does there
        if self._sparse:  # the step of the averager is of the dense buckets
            self._came[bucket.index()] = len(parameters)
            is_first = not any(self._came[each] for each in self._came if each != bucket.index())
            is_last = sum(self._came.values()) >= len(self._names)
            if bucket.is_last() and not is_last:
                fault = fault or "DDP reduces other parameters than the state was made for: make the state of the DDP module, anew"
                if sparse is None:
                    is_last = True
                else:  # those that came would wait for the others
                    _saving.tried(self._native.undo)
        # With one state on the group DDP sees to it that all ranks do the same; with others it knows nothing of them.
        compares = is_first and (self._company.made > 1 or callable(self.density))
        used, twice = self._uses.take(parameters, bucket)
        if twice is not None and not fault:
            fault = (f"the gradient of {self._names[twice]} was there before the pass, and the velocity would take it twice: call "
                     "zero_grad before, and accumulate within no_sync, the forward pass included")
        inner = torch.futures.Future(devices=_devices.of_future(buffer))
        future = inner if self._in_backward else _with_error_of(inner)
        how = {"is_first": is_first, "is_last": is_last, "loss_scale": 1.0 if scale is None else scale,
               "keeps_error": self._in_backward}
        if sparse is not None:
            self._start_sparse(inner, buffer, sparse, fault)
            if bucket.is_last() and not self._in_backward:
                self._end_without_backward()
            return future
        fault, subject = fault or failed, f"backward pass of state {self._number}" if compares else ""
        if self._node is None:
            self._start(inner, buffer, parameters, "", used, fault, "", subject, reordered=reordered, **how)
            if self._sparse and bucket.is_last() and not self._in_backward:
                self._end_without_backward()
            return future
        if reordered and not fault:
            fault = (f"the memory_format of {self._names[reordered[0][0]]} has changed since the state was made, whose values are of "
                     "several ranks of a node: make DDP and state anew")
        self._start_in_node(inner, buffer, [each.numel() for each in given], parameters, used, fault, subject, how)
        if not self._in_backward and is_last:
            future.wait()
            self._ended()
        return future

    def _start_sparse(self, future, gradient, name, fault):
        """As `_start`, for the gradient of an embedding, whose average is a sparse tensor."""
        self._started += 1
        kept, what = self._kept if self._in_backward else None, f"the gradient of {name}"

        def add():
            average, text = _saving.tried(_sparse.averaged, self._company.group, self._group.size(), gradient,
                                          f"{what}{f' in state {self._number}' if self._company.made > 1 else ''}", fault)
            self._fails_sparse = self._fails_sparse or bool(text)
            with _engine.calling_back():
                if text and kept is None:
                    future.set_exception(Error(text))
                    return
                if text:
                    kept.text = kept.text or text
                    average = _sparse.none_of(gradient)
                future.set_result(average)
        if gradient.device.type != "cpu":  # whose copies wait for the work of this thread
            self._company.line.wait()
        self._company.line.do(add, lambda raised: None, waits=gradient.device.type == "cpu")

    def _end_without_backward(self):
        """Of a rank within `join`: it takes part where the others take the step back."""
        self._company.line.wait()
        self._take_back_beside_sparse()

    def _take_back_beside_sparse(self):
        """The dense part of a step whose sparse gradients have failed, on all ranks."""
        if self._fails_sparse and self._names:
            _saving.tried(self._native.undo)  # nothing where it has failed, too

    def _start_in_node(self, future, buffer, lengths, parameters, used, fault, subject, how):
        """As `_start`, for the own share of each tensor: of what the ranks of the node have together."""
        if how["is_first"]:
            self._of_node, self._was_taken_back, self._was_skipped = _node.Step(self._node, how["loss_scale"]), False, False
        kept, streams, step = self._kept if how["keeps_error"] else None, _devices.streams_of(buffer.device), self._of_node
        bucket = step.scatter(buffer, lengths, used, bool(fault), how["is_last"])

        def gather(text):
            bucket.gather(buffer)
            with contextlib.nullcontext() if streams is None else streams.current():
                future.set_exception(Error(text)) if text else future.set_result(buffer)

        def failed(raised):
            if kept is None:
                future.set_exception(Error(_first_line(raised)))
                return
            kept.text = kept.text or _first_line(raised)
            _devices.fill(buffer, 0)
            future.set_result(buffer)

        def gathers(text):
            step.gather(functools.partial(gather, text), failed)
        self._start(_Then(gathers), bucket.share, parameters, "", used, fault, "", subject, within=bucket, **how)

    def _reordered(self, given, parameters, buffer):
        """Of the parameters whose values lie in another order in the bucket than those of their residuals, for their memory_format
        has changed: where each value was; and what is wrong with it."""
        reordered, begin, size = [], buffer.data_ptr(), buffer.element_size()
        for each, number in zip(given, parameters):
            gradient, before = each.grad, self._orders[number]
            lies_there = gradient is not None and begin <= gradient.data_ptr() < begin + size * buffer.numel()
            strides = _strides(gradient if lies_there else each)
            if _order(each.shape, strides) == before:
                continue
            if not lies_there:
                return [], (f"the memory_format of {self._names[number]} has changed since the state was made: change it before DDP "
                            "wraps the module, or make both anew")
            steps, places = iter(before), torch.arange(each.numel(), device="cpu")
            was = places.as_strided(each.shape, [next(steps) if length > 1 else 1 for length in each.shape])
            reordered.append((number, torch.empty_like(places)))
            reordered[-1][1].as_strided(each.shape, strides).copy_(was)
            self._orders[number] = _order(each.shape, strides)
        return reordered, ""

    def _find_ddp(self):
        """The DDP module over the parameters, for a state that was made of the module inside."""
        found = _ddp.around(self._index)
        found = [each for each in found if any(one[1] is self for one in getattr(each, "_comm_hooks", [(None, self)]))]
        if found and not self._has_own_group and all(_ranks(each.process_group) != _ranks(self._group) for each in found):
            raise Error(f"DDP averages over the ranks {_ranks(found[0].process_group)}, and the state over {_ranks(self._group)}: make "
                        "the state of the DDP module")
        if len(found) == 1:
            self._uses.watch(found[0])

    def _ended(self):
        if self._node is not None:
            self._agree_in_node()
        self._take_back_beside_sparse()
        if self._skips and self.last_step()["was_skipped"]:
            for each in self._index:
                each.grad = None
        if self._kept.text:
            raise Error(self._kept.text)

    def _agree_in_node(self):
        """Ends the step in the same way for all shares of the node; so do the other nodes."""
        was_skipped, of_share = self._native.last_step()["was_skipped"], self._of_node.fault
        text = f"{of_share} ({self._node.averaged_by()})" if of_share else self._kept.text
        try:
            skips, fails, is_wrong = self._node.agreement.of(was_skipped, bool(of_share), bool(text))
            if skips or fails:
                self._native.undo()  # nothing where it has failed
                self._was_taken_back = True
            self._was_skipped = skips
            if is_wrong:
                self._node.agreement.of(0, 0, 0, fault=text)
        except Error as error:  # that of another rank, or one has died, which its share has said already
            self._kept.text = text or str(error)

    def _steps_of_borders(self):
        return 2 if self._uses.are_static() else 1  # as torch 1.13 has it


def _plain(name):
    """The name of a parameter without what torch.compile puts in front."""
    return name.replace("_orig_mod.", "")


_RANK = "rank"  # before its number


def _bytes_of(saved):
    """The rank that has saved a state, -1 where it does not say, and its bytes. Those saved before there were names of ranks have
    the bytes themselves."""
    if isinstance(saved["state"], torch.Tensor):
        return int(saved.get("rank", -1)), saved["state"]
    (name, (data,)), = saved["state"].items()
    if not name.startswith(_RANK) or not name[len(_RANK):].isdecimal():
        raise ValueError(f"{name} is no rank")
    return int(name[len(_RANK):]), data


def _ranks(group):
    """Those of a process group, as torch.distributed numbers them; the group itself where it knows none."""
    known = torch.distributed.distributed_c10d._pg_group_ranks  # pylint: disable=protected-access
    return sorted(known[group]) if group in known else group


def _strides(tensor):
    """How the values of a gradient lie in a bucket of DDP, or in itself: as those of its tensor where these are dense."""
    length = 1 + sum((one - 1) * step for one, step in zip(tensor.shape, tensor.stride()))
    return tensor.stride() if length == tensor.numel() else torch.empty(tensor.shape, device="meta").stride()


def _order(shape, strides):
    """The strides that tell the order of values: a dimension of length 1 has any."""
    return tuple(step for step, length in zip(strides, shape) if length > 1)


def _reduced_parameters(model, ddp):
    """The parameters that DDP reduces, with their names: those with dense gradients, those with sparse ones; and what is wrong with
    them."""
    module = model if ddp is None else ddp.module
    ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))  # as DDP reads it
    named = [(name, each) for name, each in module.named_parameters() if each.requires_grad and name not in ignored]
    sparse = {each.weight for each in module.modules() if isinstance(each, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and each.sparse}
    faults = []
    if ddp is not None and not any(each in sparse for _, each in named):  # it keeps those that required a gradient when it was made
        buckets = ddp.reducer._get_zeros_like_grad_buckets()  # pylint: disable=protected-access  # raises where one is sparse
        reduced = dict.fromkeys(each for bucket in buckets for each in bucket.parameters())
        named = [(name, each) for name, each in module.named_parameters() if each in reduced]
        replaced = [each for each in reduced if each not in {one for _, one in named}]
        named += [(f"replaced.{i}", each) for i, each in enumerate(replaced)]  # in the module, and not for DDP
    if _ddp.is_sharded(module):
        faults = [_ddp.SHARDED]
    faults = faults + [_fault_of(f"the parameter {name}", each) for name, each in named]
    named = [(_plain(name), each) for name, each in named]
    return [one for one in named if one[1] not in sparse], [one for one in named if one[1] in sparse], faults


def _called(what, function, *arguments):
    """The number that a function of the program gives, or a number itself; and in words what it raises: DDP cannot go on
    behind a hook that raises, and the other ranks would wait."""
    try:
        given = function(*arguments) if callable(function) else function
        return None if given is None else float(given), ""
    except Exception as raised:  # pylint: disable=broad-except
        return None, f"{what} is not known: {raised!r}"


def _at_end_of_backward(call):
    """Whether there is a backward pass: a rank without inputs within `join` has none."""
    try:
        torch.autograd.Variable._execution_engine.queue_callback(call)  # pylint: disable=protected-access
    except RuntimeError:
        return False
    return True


class _Then:
    """A call in the place of a future, with the sentence of its error, which is empty where there is none."""

    def __init__(self, call):
        self._call = call

    def set_result(self, _):
        self._call("")

    def set_exception(self, error):
        self._call(str(error))


class _Future(torch.futures.Future):
    """Of a call by key, whose error ends the step."""

    def __init__(self, failed, devices):
        super().__init__(devices=devices)
        self._of_error = failed

    def wait(self):
        try:
            return super().wait()
        except RuntimeError as error:
            raise self._of_error(error) from None


def _with_error_of(future):
    """A future whose error DDP sees, as a RuntimeError: that of `set_exception` only Python does."""
    return future.then(lambda of: of.value())


def _failed(bucket, text):
    """Of a bucket whose call was not made. In a backward pass it has zeros, and the error comes behind DDP's end of it."""
    future = torch.futures.Future(devices=_devices.of_future(bucket.buffer()))

    def fails():
        raise Error(text)
    if _at_end_of_backward(lambda: _at_end_of_backward(fails)):
        future.set_result(bucket.buffer().zero_())
        return future
    failed = _with_error_of(future)
    future.set_exception(Error(text))
    return failed


def _first_line(raised):
    """What an exception of torch says, without the stack of calls that some have."""
    return str(raised).split("\n", maxsplit=1)[0]


class _uses:
    """Which parameters this rank uses in a backward pass that DDP reduces, as DDP counts them: it leaves the gradient of a
    parameter as it is where no rank has used it, whatever a hook has written.

    DDP counts from where a backward pass that it will reduce is prepared, until it has reduced; newer ones always. Its forward
    method prepares, whose number it knows, or the program does, whose pass is known by its calls of the hook. It forgets a use
    when it has reduced, and never with a static graph."""

    # From torch 2.0 on a hook of a tensor is called by autograd.grad, too, which is no use; 2.1 has one that is not.
    _hears_of_accumulation = hasattr(torch.Tensor, "register_post_accumulate_grad_hook")

    def __init__(self, ddp, named, has_momentum, hear):
        """`hear`, a weak reference, is called with each gradient's parameter."""
        self._hear = hear
        self._used, self._used_in_pass = [0] * len(named), set()
        self._ddp, self._reduced = (lambda: None), None  # a weak reference: it holds the state
        self._sees_averages, self._is_after_averages, self._twice = has_momentum, False, None
        self._there, self._handles = False, []
        for i, (name, each) in enumerate(named):
            is_trained = each.requires_grad  # a frozen one may be trained again
            each.requires_grad_(True)
            self._handles.append(each.register_hook(functools.partial(self._see, i, name, weakref.ref(each), each.dtype, each.device)))
            if self._hears_of_accumulation:
                self._handles.append(each.register_post_accumulate_grad_hook(functools.partial(self._note, i)))
            each.requires_grad_(is_trained)
        if ddp is not None:
            self.watch(ddp)

    def watch(self, ddp):
        self._ddp, self._reduced = weakref.ref(ddp), self._passes_of(ddp)

    def end(self):
        for each in self._handles:
            each.remove()

    @staticmethod
    def _passes_of(ddp):
        return getattr(ddp, "num_iterations", None)

    def are_static(self):
        return getattr(self._ddp(), "static_graph", False)

    def _see(self, i, name, parameter, dtype, device, gradient):
        """A gradient, before it is added to that of its parameter."""
        if gradient.dtype != dtype or gradient.device != device:  # DDP reduces it no longer, without a word
            raise Error(f"{name} is of type {gradient.dtype} on {gradient.device}, and was of {dtype} on {device} when the state was made: "
                        "make DDP and state anew")
        hear = self._hear()
        if hear is not None:
            hear(i, parameter())
        if self._is_after_averages:
            there = parameter().grad
            self._there = there is not None and bool(there.any())
        if not self._hears_of_accumulation:
            self._note(i)

    def _note(self, i, _parameter=None):
        """A gradient that has been added, or is about to be."""
        ddp = self._ddp()
        if self._is_after_averages:
            self._is_after_averages, self._twice = False, i if self._there else None
        always = DDP_COUNTS_WITHOUT_SYNC and not (ddp and ddp.static_graph)
        if always or (ddp and self._passes_of(ddp) is None) or (ddp and self._passes_of(ddp) != self._reduced):
            self._used[i] = 1
        else:
            if not self._used_in_pass:
                _at_end_of_backward(self._used_in_pass.clear)
            self._used_in_pass.add(i)

    def take(self, numbers, bucket):
        """0 or 1 of each parameter of the bucket, nothing where DDP applies every average; and a parameter whose gradient had
        the average of the pass before in it, None where it has not or where nobody asks."""
        ddp, is_static = self._ddp(), self.are_static()
        used = [int((self._used[i] or i in self._used_in_pass) and each.grad is not None)
                for i, each in zip(numbers, bucket.parameters())]
        for i in numbers:
            self._used[i] = self._used[i] if is_static else 0
        twice = self._twice
        if bucket.is_last():
            self._reduced, self._twice, self._is_after_averages = self._passes_of(ddp), None, self._sees_averages
            self._used_in_pass.clear()
        return used if ddp is not None and (ddp.find_unused_parameters or is_static) else [], twice


def attach(model, scheme="ok_topk", *, replicas=None, **options):
    """Makes the `state` of the DDP module in what a framework hands out, and registers `hook` with it; gives the state.

    Collective. `model` is a DDP module, or a module with one in it, as of torch.compile, Fabric or Accelerate, or one that
    `torch.distributed._composable.replicate` was applied to. Scheme and options are those of `state`. An `Error` where there
    are several DDP modules, or none, where the module is sharded (FSDP), and where DDP has a hook already.

    With `replicas`, the process group of the ranks that have the same shard, `model` has modules that `fully_shard` of FSDP2 was
    applied to, each over the ranks of one replica. Their gradients are averaged between replicas; gives the `averager`, whose
    options these are, with the names of the modules as keys."""
    if replicas is not None:
        modules = _ddp.sharded(model)
        options.setdefault("device", next((each.device for each in model.parameters()), None))
        average = averager(replicas, scheme, **options)
        for name, each in modules:
            each.set_all_reduce_hook(functools.partial(average, key=_plain(name)))
        return average
    module, ddp, group = _ddp.to_attach(model)
    made = state(module, scheme, group, **options)
    _ddp.register(ddp, made, hook)
    return made


def hook(carried, bucket):
    """The communication hook, for `DistributedDataParallel.register_comm_hook`, with a `state`."""
    if not isinstance(bucket, torch.distributed.GradBucket):  # whoever calls it reads no future
        raise Error(f"oktopk_torch.hook takes a bucket of DDP, and not {type(bucket).__name__}: FSDP and the compiled reducer of DDP "
                    "(optimize_ddp='python_reducer') have no buckets; average with oktopk_torch.averager")
    if not getattr(carried, "_is_of_ddp", False):  # by its name: a module that is loaded again has another class
        what = ("its state_dict(), which a state becomes that is copied or pickled: make a state, and load that into it with "
                "load_state_dict") if isinstance(carried, dict) else repr(carried)
        return _failed(bucket, f"register_comm_hook(state, oktopk_torch.hook) takes an oktopk_torch.state, and not {what}")
    started = carried._started  # pylint: disable=protected-access
    try:
        return carried.start(bucket)
    except Exception as raised:  # pylint: disable=broad-except  # DDP could not go on
        return _joined(carried, bucket, raised) if carried._started == started else _failed(bucket, str(raised))


def _joined(carried, bucket, raised):
    """The call of a bucket, which the other ranks make, with what a hook has raised before it as this rank's fault."""
    try:
        return carried._reduce(bucket, f"the hook raised {raised!r}")  # pylint: disable=protected-access
    except Exception:  # pylint: disable=broad-except  # there is no state, on any rank
        return _failed(bucket, str(raised))
