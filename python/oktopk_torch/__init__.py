# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse averages with error feedback for PyTorch: as a hook of DistributedDataParallel (DDP), and alone.

    ddp.register_comm_hook(oktopk_torch.state(ddp, "ok_topk(density=0.01, format=packed)"), oktopk_torch.hook)

    average = oktopk_torch.averager(group, "ok_topk(density=0.01)")
    average(gradient, key="layer3")

Any algorithm of oktopk's catalogue averages; `density` is the share of entries that it selects. What is not selected stays
in a residual and is added to the next gradient. What goes wrong is an `Error`, on every rank."""

import atexit
import collections
import functools
import weakref

import torch  # before the extension module, which needs its libraries
import torch.distributed
from torch.nn.parallel import DistributedDataParallel

from . import _native
from ._native import density_schedule

__all__ = ["Error", "algorithms", "averager", "density_schedule", "hook", "state"]
__version__ = _native.version()
Error = _native.Error  # a RuntimeError
TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)
# DDP counts a use within `no_sync` as one of the next pass that it reduces (pytorch#124193).
DDP_COUNTS_WITHOUT_SYNC = torch.__version__ >= (2, 4)

atexit.register(_native.shut_down)


def algorithms():
    """The algorithms of the catalogue: their names, and what each is."""
    return _native.algorithms()


def _fault_of(what, tensor, types=TYPES):
    """Why it cannot be averaged, in words; empty where it can."""
    if not isinstance(tensor, torch.Tensor):
        return f"{what} is {tensor!r}" if tensor is None else f"{what} is of type {type(tensor).__name__}, and no tensor"
    if tensor.layout != torch.strided:
        return f"{what} is a sparse tensor; oktopk takes dense ones"
    if tensor.device.type != "cpu":
        return f"{what} lies on {tensor.device}; oktopk_torch takes tensors of the CPU"
    if tensor.dtype not in types:
        return f"{what} is of type {tensor.dtype}, expected one of {', '.join(map(str, types))}"
    return ""


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


class _Company:
    """What the averagers of a process group share: how many there are, and a group beside it for the sums of Gloo.

    Gloo pairs the collective calls of a group by their order. The thread of the averages may call one while the program, or
    DDP, calls another; so it does that on a group of its own. Made by all ranks of the group together."""

    of = weakref.WeakKeyDictionary()  # groups

    def __init__(self, group):
        self.made, self.group = 0, self._beside(group)

    @staticmethod
    def _beside(group):  # pylint: disable=protected-access
        c10d = torch.distributed.distributed_c10d
        if group.size() == 1 or group not in c10d._pg_names:
            return None  # one rank, or a group that torch.distributed does not know
        of_cpu = group._get_backend(torch.device("cpu")) if hasattr(group, "_get_backend") else group
        limit = getattr(getattr(of_cpu, "options", None), "_timeout", c10d.default_pg_timeout)
        # `new_group` waits for ranks that are not in the group; and with local synchronisation newer ones name it by the number
        # of groups that this rank is in, which differs between ranks: they wait for ever.
        store = c10d.PrefixStore(f"oktopk_torch beside {c10d._pg_names[group]}", c10d._get_default_store())
        gloo = c10d.ProcessGroupGloo(store, group.rank(), group.size(), limit)
        if isinstance(gloo, torch.distributed.ProcessGroup):  # before torch 2
            return gloo
        options = () if torch.__version__ >= (2, 6) else (c10d.ProcessGroup.Options("gloo"),)
        beside = c10d.ProcessGroup(store, group.rank(), group.size(), *options)
        beside._register_backend(torch.device("cpu"), c10d.ProcessGroup.BackendType.GLOO, gloo)
        return beside


class averager:  # pylint: disable=invalid-name  # reads as a function where it is called
    """Averages of tensors over the ranks of a process group, each key with a residual of its own.

    Collective. `scheme` is NAME or NAME(KEY=VALUE, ...) of the catalogue; one that selects has a `density` in (0, 1], 0.01
    unless given. `group` must move tensors of the CPU (Gloo); the default group where it is None. Sums and residuals are
    of type `dtype`, float32 or float64; float32 takes float16 and bfloat16 as well.

    `momentum` in [0, 1), and Nesterov's where `nesterov` is set, is that of tensors before their residual (momentum
    correction and factor masking, Lin et al. 2018): for an optimizer that has none of its own, in place of it.
    `clip_norm` is the largest norm of a rank's own tensor, before its residual. `residual_decay` b in [0, 1] makes the
    residual e <- b e + g, as DeMo and SparseLoCo have it. `density` takes the place of the scheme's: a number, or a
    function of the step such as `density_schedule`, the same on all ranks; steps of an averager are the calls of a key."""

    _orders = ()  # of values in memory, for each tensor: those of an averager are copied into the usual one
    _started = 0  # calls

    def __init__(self, group=None, scheme="ok_topk", *, dtype=torch.float32, **options):
        fault = "" if dtype in (torch.float32, torch.float64) else f"dtype = {dtype} is neither float32 nor float64"
        self._begin(group, scheme, dtype, fault, [], [], **options)

    def _begin(self, group, scheme, dtype, fault, names, lengths, skips=False, *, momentum=0.0, nesterov=False, clip_norm=0.0,
               residual_decay=1.0, density=None):
        self.scheme, self.dtype, self.density, self._was_set = scheme, dtype, density, None
        self._group = torch.distributed.group.WORLD if group is None else group
        if not isinstance(self._group, torch.distributed.ProcessGroup):
            raise Error("there is no process group, or this rank is not in it: call torch.distributed.init_process_group first")
        _check_group(self._group)
        self._names, self._lengths, self._steps = list(names), list(lengths), {"": 0} if names else {}  # steps: of each key
        self._types = TYPES if dtype == torch.float64 else TYPES[:3]
        if not isinstance(scheme, str):
            scheme, fault = "dense", f"the scheme {scheme!r} is no text"
        feedback = _native.Feedback(momentum, nesterov, True, clip_norm, residual_decay)
        if self._group not in _Company.of:
            _Company.of[self._group] = _Company(self._group)
        self._company = _Company.of[self._group]
        self._company.made += 1
        self._number = self._company.made
        made = _native.Averager64 if dtype == torch.float64 else _native.Averager32
        self._native = made(self._group, self._company.group or self._group, scheme, feedback, self._names, self._lengths, skips,
                            fault)
        if density is not None:  # what is wrong with it is said here
            self._native.set_density(density(0) if callable(density) else density)

    def __call__(self, tensor, key="", *, async_op=False):
        """Makes a tensor its average over the ranks, in place; gives the tensor, or a future of it with `async_op`.

        Collective. Calls come in the same order on all ranks; a key has the same number of values in each. Each call
        compares its key on all ranks first, in ceil(log2 P) messages of 4 words."""
        if not async_op:
            _native.expect_other_thread()
        fault = _fault_of(f"the tensor of key {key!r}", tensor, self._types)
        length = 0 if fault else tensor.numel()
        if key not in self._names:
            self._native.add(str(key), length, fault)
            self._names.append(key)
            self._lengths.append(length)
        number = self._names.index(key)
        if not fault and length != self._lengths[number]:
            fault = f"the tensor of key {key!r} has {length} values, and had {self._lengths[number]} before"
        buffer = tensor.detach() if isinstance(tensor, torch.Tensor) else torch.empty(0)
        future = self._start(buffer, [number], [], fault, key, f"key {key!r} of averager {self._number}")
        if async_op:
            return future
        _wait(future)
        return tensor

    average = __call__

    def _start(self, buffer, tensors, used, fault, key, subject, is_first=True, is_last=True, loss_scale=1.0, keeps_error=False):
        step, density = self._steps.get(key, 0), None
        if is_first:
            density, failed = _called(f"the density of step {step}", self.density, step)
            fault = fault or failed
        future = torch.futures.Future()
        self._started += 1
        self._native.start(_native.Arrival(buffer, tensors, used, fault, subject, is_first, is_last, loss_scale, density), future,
                           keeps_error)
        self._steps[key] = step + is_last
        return future

    def set_density(self, density):
        """Another density from now on, in (0, 1], instead of the scheme's and of a schedule. Collective, between steps."""
        self._native.set_density(density)
        self.density = self._was_set = density

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
            *lines])

    def state_dict(self):
        """All of this rank's state, for `torch.save`; between two steps.

        A program that loads it, with the same model and number of ranks, goes on to the bit as the one that saved it,
        where that one had done two iterations or more, or three with `static_graph`: DDP builds other buckets after its
        first, or second. "state" has the bytes that `oktopk::save` writes in C++ for buckets over an algorithm by its
        name, as `data_parallel` makes them."""
        return {"scheme": self.scheme, "parameters": list(self._names), "state": self._native.save(),
                "lengths": list(self._lengths), "steps": dict(self._steps), "density": self._was_set,
                "ranks": self._group.size(), "rank": self._group.rank(), "orders": list(self._orders)}

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
        rank, ranks, is_state = self._group.rank(), self._group.size(), isinstance(self, state)
        is_list = isinstance(saved, (list, tuple))
        every = list(saved) if is_list else [saved]
        mine = every[rank::ranks] or every[:1] if other_ranks and is_list else every
        states, names, lengths, steps = [torch.empty(0, dtype=torch.uint8)], [], [], {}
        fault, density, saved_by, share = "", None, -1, 1.0 if other_ranks else None
        try:
            first = mine[0]
            states, names = [each["state"].detach() for each in mine], list(first["parameters"])
            density = None if first.get("density") is None else float(first["density"])
            lengths, steps = list(first.get("lengths", self._lengths)), dict(first.get("steps", {}))
            before, ordered = first.get("ranks", ranks), dict(zip(self._names, self._orders))
            if other_ranks:
                share = 0.0 if is_list and rank >= len(every) else ranks / before
            saved_by = -1 if other_ranks and is_list else int(first.get("rank", -1))
            if not -1 <= saved_by < min(before, 2 ** 31):
                raise ValueError(f"rank {saved_by} of {before}")
            if is_state:
                names, steps = [_plain(each) for each in names], {"": max(steps.values(), default=0)}
            moved = [name for name, order in zip(names, first.get("orders", ())) if ordered.get(name, order) != order]
            if is_state and names != self._names and not partial:
                others = sorted(set(names) ^ set(self._names), key=str) or "they have another order"
                fault = f"the parameters of the saved state and of the model do not fit: {others} (partial=True takes what both have)"
            elif moved:
                fault = f"the values of {moved} lie in another order in memory (memory_format) than those that were saved"
            elif before != ranks and not other_ranks:
                fault = f"the saved state is of {before} ranks, and there are {ranks}: load_state_dict(..., other_ranks=True)"
            elif other_ranks and is_list:
                fault = next((f"the saved state at place {i} is of rank {each['rank']}: the list has the state of each rank, in "
                              "their order" for i, each in enumerate(every) if each.get("rank", i) != i), "")
            elif len(every) > 1:
                fault = f"a list of {len(every)} states is for other_ranks=True: else each rank loads its own state"
            elif saved_by not in (-1, rank) and not other_ranks:
                fault = (f"the saved state is of rank {saved_by}, and this is rank {rank}: residuals differ by rank, so each "
                         "rank saves and loads its own state")
        except Exception as wrong:  # pylint: disable=broad-except  # of this rank alone: others hear of it
            fault, saved_by = f"the saved state is none of oktopk_torch: {wrong!r}", -1
        self._native.load(states, _native.Loading(list(map(str, names)), fault, share, bool(is_state and partial), saved_by,
                                                  self._steps_of_borders(), density))
        self._steps = steps
        if not is_state:
            self._names, self._lengths = names, lengths
        if density is not None:
            self.density = self._was_set = density

    def _steps_of_borders(self):
        return 1


class state(averager):  # pylint: disable=invalid-name  # reads as a function where a hook is registered
    """What `hook` carries from one iteration to the next: residuals and the states of the algorithm, by parameter.

    Collective. `model` is the DDP module, whose process group is used, or the module inside together with
    `process_group`; gradients are dense and lie on the CPU. Give the DDP module where it has `find_unused_parameters` or
    `static_graph`: what it counts as used is known from it alone. A state of the module inside that is made before
    `torch.distributed.init_process_group` uses the default group, from its first use on. Sums are of float64 where a
    parameter is. Scheme and options are those of `averager`; `clip_norm` is that of all gradients of a rank together.

    With `grad_scaler` (as torch.cuda.amp's), residuals have no scale, and gradients that are not finite on some rank are
    infinities on all, in place of an error: the scaler skips the step, and residuals are as before. With
    `skip_step_on_fault` they are None, and any optimizer skips the step; `last_step()["was_skipped"]` tells."""

    def __init__(self, model, scheme="ok_topk", process_group=None, *, grad_scaler=None, skip_step_on_fault=False, **options):
        is_ddp = isinstance(model, DistributedDataParallel)
        named, faults = _reduced_parameters(model, is_ddp)
        self._index = {each: i for i, (_, each) in enumerate(named)}
        self._orders = [tuple(step for step, length in zip(each.stride(), each.shape) if length > 1) for _, each in named]
        self._scaler = grad_scaler if grad_scaler is not None and getattr(grad_scaler, "is_enabled", lambda: True)() else None
        self._skips = skip_step_on_fault and self._scaler is None
        dtype = torch.float64 if any(each.dtype == torch.float64 for _, each in named) else torch.float32
        begin = functools.partial(self._begin, model.process_group if process_group is None and is_ddp else process_group, scheme,
                                  dtype, next(filter(None, faults), ""), [name for name, _ in named],
                                  [each.numel() for _, each in named], self._skips or self._scaler is not None, **options)
        if is_ddp or process_group is not None or torch.distributed.is_initialized():
            begin()
        else:
            self._begins_later = begin
        self._uses = _uses(model if is_ddp else None, [each for _, each in named])

    def __getattr__(self, name):  # what `_begin` makes, of a state from before there was a process group
        if name.startswith("__") or "_begins_later" not in self.__dict__:
            raise AttributeError(name)
        self._begins_later()
        del self._begins_later
        return getattr(self, name)

    def start(self, bucket):
        """Starts the allreduce of a bucket in the background; gives the future of its averages."""
        return self._reduce(bucket)

    def _reduce(self, bucket, fault=""):
        parameters = [self._index.get(each) for each in bucket.parameters()]
        fault = fault or _fault_of("a bucket's gradient", bucket.buffer())
        if None in parameters:
            parameters, fault = [], ("a parameter of the bucket is not of the module that the state was made for, or did not "
                                     "require a gradient then; a state of the DDP module knows all that DDP reduces")
        scale, failed = (1.0, "") if self._scaler is None else _called("the scale", self._scaler.get_scale)
        is_first, is_last = bucket.index() == 0, bucket.is_last()
        if is_first:
            self._in_backward = _at_end_of_backward(self._native.backward_ended)
        if is_last and self._in_backward:
            _at_end_of_backward(lambda: _at_end_of_backward(self._ended))  # behind what DDP does there
        # With one state on the group DDP sees to it that all ranks do the same; with others it knows nothing of them.
        compares = is_first and (self._company.made > 1 or callable(self.density))
        return self._start(bucket.buffer(), parameters, self._uses.take(parameters, bucket), fault or failed, "",
                           f"backward pass of state {self._number}" if compares else "", is_first, is_last,
                           1.0 if scale is None else scale,
                           self._in_backward)

    def _ended(self):
        if self._skips and self.last_step()["was_skipped"]:
            for each in self._index:
                each.grad = None
        if text := self._native.error():
            raise Error(text)

    def _steps_of_borders(self):
        return 2 if self._uses.are_static() else 1  # as torch 1.13 has it


def _plain(name):
    """The name of a parameter without what torch.compile puts in front."""
    return name.replace("_orig_mod.", "")


def _reduced_parameters(model, is_ddp):
    """The parameters that DDP reduces, with their names, and what is wrong with them."""
    module = model.module if is_ddp else model
    ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))  # as DDP reads it
    named = [(name, each) for name, each in module.named_parameters() if each.requires_grad and name not in ignored]
    sparse = [f"{name}.weight".lstrip(".") for name, each in module.named_modules() if getattr(each, "sparse", False) is True
              and isinstance(each, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and each.weight.requires_grad]
    faults = [f"the gradient of {name} is a sparse tensor; oktopk takes dense ones: sparse=False" for name in sparse
              if name not in ignored]
    if is_ddp and not faults:  # it keeps those that required a gradient when it was made
        buckets = model.reducer._get_zeros_like_grad_buckets()  # pylint: disable=protected-access
        reduced = {each for bucket in buckets for each in bucket.parameters()}
        named = [(name, each) for name, each in module.named_parameters() if each in reduced]
    faults = [_fault_of(f"the parameter {name}", each) for name, each in named] + faults
    return [(_plain(name), each) for name, each in named], faults


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


def _wait(future):
    try:
        future.wait()
    except Error:
        raise
    except RuntimeError as error:
        raise Error(str(error)) from None


def _failed(text):
    future = torch.futures.Future()
    _native.refuse(future, text)
    return future


class _uses:
    """Which parameters this rank uses in a backward pass that DDP reduces, as DDP counts them: it leaves the gradient of a
    parameter as it is where no rank has used it, whatever a hook has written.

    DDP counts from a forward pass that it will reduce, whose number it knows, until it has reduced; newer ones always. It
    forgets a use when it has reduced, and never with a static graph."""

    def __init__(self, ddp, parameters):
        self._used = [0] * len(parameters)
        self._ddp = (lambda: None) if ddp is None else weakref.ref(ddp)  # which holds the state
        self._reduced = self._passes_of(ddp)
        for i, each in enumerate(parameters):
            is_trained = each.requires_grad
            each.requires_grad_(True).register_hook(functools.partial(self._note, i))  # a frozen one may be trained again
            each.requires_grad_(is_trained)

    @staticmethod
    def _passes_of(ddp):
        return getattr(ddp, "num_iterations", None)

    def are_static(self):
        return getattr(self._ddp(), "static_graph", False)

    def _note(self, i, _gradient):
        ddp = self._ddp()
        always = ddp is None or (DDP_COUNTS_WITHOUT_SYNC and not ddp.static_graph)
        if always or self._passes_of(ddp) is None or self._passes_of(ddp) != self._reduced:
            self._used[i] = 1

    def take(self, numbers, bucket):
        """0 or 1 of each parameter of the bucket; nothing where DDP applies every average."""
        ddp, is_static = self._ddp(), self.are_static()
        used = [int(self._used[i] and each.grad is not None) for i, each in zip(numbers, bucket.parameters())]
        for i in numbers:
            self._used[i] = self._used[i] if is_static else 0
        if bucket.is_last():
            self._reduced = self._passes_of(ddp)
        return used if ddp is None or ddp.find_unused_parameters or is_static else []


def hook(carried, bucket):
    """The communication hook, for `DistributedDataParallel.register_comm_hook`, with a `state`."""
    if not isinstance(carried, state):
        return _failed(f"register_comm_hook(state, oktopk_torch.hook) takes an oktopk_torch.state, and not {carried!r}")
    started = carried._started  # pylint: disable=protected-access
    try:
        return carried.start(bucket)
    except Exception as raised:  # pylint: disable=broad-except  # DDP could not go on
        return _joined(carried, bucket, raised) if carried._started == started else _failed(str(raised))


def _joined(carried, bucket, raised):
    """The call of a bucket, which the other ranks make, with what a hook has raised before it as this rank's fault."""
    try:
        return carried._reduce(bucket, f"the hook raised {raised!r}")  # pylint: disable=protected-access
    except Exception:  # pylint: disable=broad-except  # there is no state, on any rank
        return _failed(str(raised))
