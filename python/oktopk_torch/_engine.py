# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The engine, liboktopk_engine, for Python: the functions of oktopk/engine.h over plain memory. Nothing here knows torch.

By ctypes, and not as an extension of Python's stable ABI: one file then serves every Python and every torch, nobody who
installs needs a compiler, and the library is the one that C programs use. A call costs some tens of microseconds, once a
bucket; messages and sums never take the lock of Python.

Functions that wait give that lock back. Those that only leave work for the engine's thread keep it (`_KEEPS_LOCK`): beside a
thread that computes in Python, to get it back takes up to 5 ms."""

import atexit
import contextlib
import ctypes
import importlib
import os
import pathlib
import threading
import weakref
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t, c_void_p

ABI = 1
NAME = f"liboktopk_engine.so.{ABI}"
FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT32, INT64, COMPLEX64, COMPLEX128 = range(8)
GIVES_ERROR, GIVES_ZEROS, GIVES_INFINITIES = range(3)
CALLER = b"oktopk_torch"


class Error(RuntimeError):
    """What goes wrong in oktopk_torch: on every rank, unless it says otherwise."""


Error.__module__ = "oktopk_torch"

_Done = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)
_Set = ctypes.CFUNCTYPE(c_int32, c_void_p, c_char_p, c_void_p, c_size_t)
_Get = ctypes.CFUNCTYPE(c_int64, c_void_p, c_char_p, c_void_p, c_size_t)
_EachPair = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)
_EachTensor = ctypes.CFUNCTYPE(None, c_void_p, c_char_p, c_int64)
_EachText = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class _GroupOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("rank", c_int32), ("size", c_int32), ("name", c_char_p),
                ("folder", c_char_p), ("set", _Set), ("get", _Get), ("store", c_void_p), ("interface_name", c_char_p),
                ("time_limit", c_double), ("caller", c_char_p)]


class _AveragerOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("algorithm", c_char_p), ("sums", c_int32), ("tensor_count", c_int64),
                ("names", POINTER(c_char_p)), ("lengths", POINTER(c_int64)), ("momentum", c_double), ("nesterov", c_int32),
                ("factor_masking", c_int32), ("clip_norm", c_double), ("residual_decay", c_double), ("on_non_finite", c_int32),
                ("fault", c_char_p), ("directions", c_int32), ("beta2", c_double), ("epsilon", c_double),
                ("dimensions", POINTER(c_int64)), ("dimension_counts", POINTER(c_int32))]


class _Contribution(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("indices", c_void_p), ("values", c_void_p), ("count", c_int64), ("element", c_int32),
                ("length", c_int64), ("width", c_int64), ("subject", c_char_p), ("fault", c_char_p)]


class _Reordering(ctypes.Structure):
    _fields_ = [("tensor", c_int32), ("from_", c_void_p)]


class _Arrival(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("values", c_void_p), ("length", c_int64), ("element", c_int32),
                ("tensors", POINTER(c_int32)), ("tensor_count", c_int64), ("key", c_char_p), ("used", POINTER(c_int32)),
                ("reordered", POINTER(_Reordering)), ("reordered_count", c_int64), ("fault", c_char_p), ("subject", c_char_p),
                ("is_first", c_int32), ("is_last", c_int32), ("continues", c_int32), ("loss_scale", c_double),
                ("has_density", c_int32), ("density", c_double), ("zero_on_error", c_int32), ("done", _Done),
                ("user", c_void_p), ("dimensions", POINTER(c_int64)), ("dimension_count", c_int32)]


class _Bytes(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("size", c_size_t)]


class _Loading(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("states", POINTER(_Bytes)), ("state_count", c_int64), ("keys", POINTER(c_char_p)),
                ("key_count", c_int64), ("fault", c_char_p), ("has_share", c_int32), ("share", c_double), ("in_part", c_int32),
                ("saved_by", c_int32), ("steps_of_borders", c_int32), ("has_density", c_int32), ("density", c_double),
                ("called", c_char_p)]


class _Figures(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("steps", c_int64), ("skipped", c_int64), ("was_skipped", c_int32),
                ("ranks", c_int32), ("buckets", c_int32), ("values", c_double), ("selected", c_double), ("words", c_double),
                ("step_values", c_double), ("seconds", c_double), ("hidden_seconds", c_double), ("hideable_seconds", c_double)]


# Name, behind oktopk_engine_: what it gives, and its arguments. c_int32: a code, whose error is raised (`check`).
_FUNCTIONS = {
    "abi": (c_int32,), "version": (c_char_p,), "last_error": (c_char_p,),
    "backend": (c_char_p,), "initialize_on": (c_int32, c_int32), "finalize": (c_int32,), "algorithms": (c_int32, _EachPair, c_void_p),
    "group_defaults": (None, POINTER(_GroupOptions)), "group_make": (c_int32, POINTER(_GroupOptions), POINTER(c_void_p)),
    "group_free": (None, c_void_p),
    "contribution_defaults": (None, POINTER(_Contribution)),
    "sparse_sum": (c_int32, c_void_p, POINTER(_Contribution), POINTER(c_void_p)), "entries_count": (c_int64, c_void_p),
    "entries_indices": (c_void_p, c_void_p), "entries_values": (c_void_p, c_void_p), "entries_free": (None, c_void_p),
    "averager_defaults": (None, POINTER(_AveragerOptions)),
    "averager_make": (c_int32, c_void_p, POINTER(_AveragerOptions), POINTER(c_void_p)), "averager_free": (None, c_void_p),
    "arrival_defaults": (None, POINTER(_Arrival)), "arrive": (c_int32, c_void_p, POINTER(_Arrival)),
    "average": (c_int32, c_void_p, POINTER(_Arrival)),
    "backward_ended": (c_int32, c_void_p), "set_density": (c_int32, c_void_p, c_double), "undo": (c_int32, c_void_p),
    "save": (c_int32, c_void_p, POINTER(c_void_p)), "save_before_step": (c_int32, c_void_p, POINTER(c_void_p)),
    "blob_data": (c_void_p, c_void_p), "blob_size": (c_size_t, c_void_p),
    "blob_free": (None, c_void_p), "loading_defaults": (None, POINTER(_Loading)),
    "load": (c_int32, c_void_p, POINTER(_Loading)),
    "tensors": (c_int32, c_void_p, _EachTensor, c_void_p), "schemes": (c_int32, c_void_p, _EachText, c_void_p),
    "residual_norm": (c_int32, c_void_p, POINTER(c_double)), "words_sent": (c_int32, c_void_p, POINTER(c_double)),
    "last_step": (c_int32, c_void_p, POINTER(_Figures)),
}
_KEEPS_LOCK = {"last_error", "arrival_defaults", "arrive", "backward_ended", "averager_free", "group_free"}


class Library:
    """An engine: its functions, with their types, by the names of the table."""

    def __init__(self, path):
        self.path = path
        waits, keeps = ctypes.CDLL(path), ctypes.PyDLL(path)
        if getattr(waits, "oktopk_engine_abi", None) is None or waits.oktopk_engine_abi() != ABI:
            raise ImportError(f"{path} is not the engine of this oktopk_torch, whose interface has the number {ABI}: install "
                              "both anew, from one release of oktopk")
        for name, (gives, *takes) in _FUNCTIONS.items():
            function = getattr(keeps if name in _KEEPS_LOCK else waits, f"oktopk_engine_{name}")
            function.restype, function.argtypes = gives, takes
            setattr(self, name, function)
        self.where = self.backend().decode()
        atexit.register(self.finalize)  # calls under way call back into Python, so they end before it does

    def check(self, code):
        if code:
            raise Error(self.last_error().decode("utf-8", "replace"))

    def list_algorithms(self):
        """The names of algorithms, and a line about each."""
        found = {}
        each = _EachPair(lambda _, name, about: found.update({_read(name): _read(about)}))
        self.check(self.algorithms(each, None))
        return dict(sorted(found.items()))


def _found():
    """The library: that of the environment variable OKTOPK_ENGINE, the one beside this file (a wheel's), the system's."""
    beside = pathlib.Path(__file__).with_name(NAME)
    given = os.environ.get("OKTOPK_ENGINE")
    path = given or (str(beside) if beside.exists() else NAME)
    try:
        return Library(path)
    except OSError as error:
        raise ImportError(f"oktopk_torch needs the engine of oktopk, {NAME}: beside it, where the loader of the system looks, or "
                          f"at the path in the environment variable OKTOPK_ENGINE ({error})") from None


def find_device_engine():
    """The engine of devices, or None, and in words why there is none: that of the environment variable OKTOPK_DEVICE_ENGINE, where 0
    and off stand for none, else that of the package oktopk_torch_cuda."""
    given = os.environ.get("OKTOPK_DEVICE_ENGINE", "")
    if given.lower() in ("0", "off"):
        return None, f"OKTOPK_DEVICE_ENGINE is {given}"
    try:
        library = Library(given or importlib.import_module("oktopk_torch_cuda").ENGINE)
    except ImportError as error:
        return None, "the package oktopk_torch_cuda is not installed" if error.name == "oktopk_torch_cuda" else str(error)
    except (OSError, AttributeError) as error:
        return None, f"the engine of devices cannot be loaded: {error}"
    if library.version() != HOST.version():
        return None, f"{library.path} is of oktopk {library.version().decode()}, and this is {VERSION}: install both anew"
    return library, ""


HOST = _found()
VERSION = HOST.version().decode()
PATH = HOST.path


def _text(given):
    """For C, where a text ends with 0."""
    return given.replace("\0", "\\0").encode("utf-8", "surrogatepass")


def _or_null(given):
    return _text(given) if given else None


def _read(given):
    return given.decode("utf-8", "surrogatepass")


def _array(kind, values):
    return (kind * len(values))(*values)


def _made(structure, defaults):
    made = structure()
    defaults(ctypes.byref(made))
    return made


class Group:
    """The ranks that average together. Collective. `store` has `set(key, bytes)`, and `get(key)`, which waits for another
    rank's; both are called while the group is made, on the engine's thread. What they raise is raised here."""

    def __init__(self, rank, size, name, store, time_limit, library=None):
        raised = []

        def leave(_, key, data, length):
            try:
                store.set(_read(key), ctypes.string_at(data, length))
                return 0
            except Exception as error:  # pylint: disable=broad-except  # through C
                raised.append(error)
                return 1

        def fetch(_, key, data, capacity):
            try:
                found = store.get(_read(key))
                if len(found) > capacity:
                    raise ValueError(f"{len(found)} bytes of the key {_read(key)}")
                ctypes.memmove(data, bytes(found), len(found))
                return len(found)
            except Exception as error:  # pylint: disable=broad-except
                raised.append(error)
                return -1

        self.library = HOST if library is None else library
        how = _made(_GroupOptions, self.library.group_defaults)
        how.rank, how.size, how.name = rank, size, _text(name)
        how.time_limit, how.caller = time_limit, CALLER
        how.set, how.get = _Set(leave), _Get(fetch)
        pointer = c_void_p()
        code = self.library.group_make(ctypes.byref(how), ctypes.byref(pointer))
        if code and raised:
            raise raised[0]
        self.library.check(code)
        self.pointer = pointer
        weakref.finalize(self, self.library.group_free, pointer).atexit = False

    def sparse_sum(self, entries, element, length, width, room, *, subject="", fault=""):
        """Waits for the sum of sparse vectors. `entries`: how many, and the addresses of their indices, of 64 bits, and values. The
        sum's are copied to the addresses that `room(count)` gives, with the number of bytes at each."""
        of, given, pointer = self.library, _made(_Contribution, self.library.contribution_defaults), c_void_p()
        given.count, given.indices, given.values = entries
        given.element, given.length, given.width = element, length, width
        given.subject, given.fault = _text(subject), _or_null(fault)
        of.check(of.sparse_sum(self.pointer, ctypes.byref(given), ctypes.byref(pointer)))
        try:
            for (to, size), source in zip(room(of.entries_count(pointer)), (of.entries_indices(pointer), of.entries_values(pointer))):
                ctypes.memmove(to, source, size)
        finally:
            of.entries_free(pointer)


_of_callback = threading.local()
_calls = {}  # what hears of the end of a call, by its number: C keeps nothing of Python alive
_numbers = iter(range(1, 2 ** 62))


def in_callback():
    """Whether this is the thread on which the engine calls the program: it must not wait for itself."""
    return getattr(_of_callback, "depth", 0) > 0


@contextlib.contextmanager
def calling_back():
    """Within it this thread counts as the engine's."""
    _of_callback.depth = getattr(_of_callback, "depth", 0) + 1
    try:
        yield
    finally:
        _of_callback.depth -= 1


def _end(number, code, sentence):
    with calling_back():
        _calls.pop(number)(sentence.decode("utf-8", "replace") if code else "")


_end_of_call = _Done(_end)


class Averager:
    """An averager on a group, whose functions have the names of engine.h. Memory of calls is kept alive by the caller."""

    def __init__(self, group, scheme, is_double, names=(), lengths=(), gives=GIVES_ERROR, fault="", *, momentum=0.0, nesterov=False,
                 clip_norm=0.0, residual_decay=1.0, adam=None, shapes=()):
        self._of = group.library
        how = _made(_AveragerOptions, self._of.averager_defaults)
        how.algorithm, how.sums, how.tensor_count = _text(scheme), FLOAT64 if is_double else FLOAT32, len(names)
        how.names, how.lengths = _array(c_char_p, [_text(each) for each in names]), _array(c_int64, lengths)
        how.momentum, how.nesterov, how.clip_norm, how.residual_decay = momentum, bool(nesterov), clip_norm, residual_decay
        how.on_non_finite, how.fault = gives, _or_null(fault)
        if adam is not None:
            how.directions, (how.beta2, how.epsilon) = 1, adam
            how.dimensions = _array(c_int64, [length for shape in shapes for length in shape] or [0])
            how.dimension_counts = _array(c_int32, list(map(len, shapes)) or [0])
        self._at = c_void_p()
        self._of.check(self._of.averager_make(group.pointer, ctypes.byref(how), ctypes.byref(self._at)))
        weakref.finalize(self, self._of.averager_free, self._at).atexit = False

    def average(self, *values, **how):
        """As `arrive`, and waits for the averages, without a callback."""
        self._of.check(self._of.average(self._at, ctypes.byref(self._arrival(*values, **how))))

    def arrive(self, *values, done, **how):
        """Brings values, as `_arrival` has them; `done(sentence)` is called on a thread of the engine, with an empty text where
        all went well."""
        given, number = self._arrival(*values, **how), next(_numbers)
        given.done, given.user, _calls[number] = _end_of_call, number, done
        try:
            self._of.check(self._of.arrive(self._at, ctypes.byref(given)))
        except Error:  # nothing was started
            del _calls[number]
            raise

    def _arrival(self, values, length, element, *, tensors=(), key="", used=(), reordered=(), fault="", subject="", is_first=True,
                 is_last=True, continues=False, loss_scale=1.0, density=None, shape=None):
        """A call with `length` values at the address `values`, None where there is a `fault`. `reordered`: pairs of a tensor
        and the address of its places, of 64 bits."""
        given = _made(_Arrival, self._of.arrival_defaults)
        given.values, given.length, given.element = values, length, element
        given.tensor_count = len(tensors)
        given.tensors = _array(c_int32, tensors) if tensors else None
        given.key = None if tensors else _text(key)
        given.used = _array(c_int32, used) if used else None
        given.reordered_count = len(reordered)
        given.reordered = _array(_Reordering, reordered) if reordered else None
        given.fault, given.subject = _or_null(fault), _text(subject)  # no subject: none that is compared
        given.is_first, given.is_last, given.continues, given.loss_scale = is_first, is_last, continues, loss_scale
        given.has_density, given.density = density is not None, density or 0.0
        if shape is not None:
            given.dimensions, given.dimension_count = _array(c_int64, shape or [0]), len(shape)
        return given

    def backward_ended(self):
        self._of.check(self._of.backward_ended(self._at))

    def set_density(self, density):
        self._of.check(self._of.set_density(self._at, density))

    def undo(self):
        self._of.check(self._of.undo(self._at))

    def save(self, room, before_step=False):
        """The saved state, of now or from before the last step, in the memory whose address `room(size)` gives."""
        blob = c_void_p()
        self._of.check((self._of.save_before_step if before_step else self._of.save)(self._at, ctypes.byref(blob)))
        try:
            size = self._of.blob_size(blob)
            ctypes.memmove(room(size), self._of.blob_data(blob), size)
        finally:
            self._of.blob_free(blob)

    def load(self, states, keys, fault, share, in_part, saved_by, steps_of_borders, density):
        """`states`: pairs of an address and a number of bytes."""
        how = _made(_Loading, self._of.loading_defaults)
        how.states, how.state_count = _array(_Bytes, states), len(states)
        how.keys, how.key_count = _array(c_char_p, [_text(each) for each in keys]), len(keys)
        how.fault, how.called = _or_null(fault), b"load_state_dict"
        how.has_share, how.share = share is not None, share or 0.0
        how.in_part, how.saved_by, how.steps_of_borders = in_part, saved_by, steps_of_borders
        how.has_density, how.density = density is not None, density or 0.0
        self._of.check(self._of.load(self._at, ctypes.byref(how)))

    def tensors(self):
        """Names or keys, and lengths."""
        found = []
        each = _EachTensor(lambda _, name, length: found.append((_read(name), length)))
        self._of.check(self._of.tensors(self._at, each, None))
        return [name for name, _ in found], [length for _, length in found]

    def schemes(self):
        found = []
        self._of.check(self._of.schemes(self._at, _EachText(lambda _, text: found.append(_read(text))), None))
        return found

    def _number(self, function):
        found = c_double()
        self._of.check(function(self._at, ctypes.byref(found)))
        return found.value

    def residual_norm(self):
        return self._number(self._of.residual_norm)

    def words_sent(self):
        return self._number(self._of.words_sent)

    def last_step(self):
        """The figures by their names, as numbers of type float."""
        found = _Figures(struct_size=ctypes.sizeof(_Figures))
        self._of.check(self._of.last_step(self._at, ctypes.byref(found)))
        figures = {name: float(getattr(found, name)) for name, _ in _Figures._fields_[1:]}
        figures["density"] = found.selected / found.values if found.values > 0 else 0.0
        return dict(sorted(figures.items()))
