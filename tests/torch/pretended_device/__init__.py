# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The pretended device of device.cpp, for torch 2.11 and newer: `torch.device("pretended")`, with two of them.

`start(file)` gives it to a process; the backend of torch.distributed for its tensors is "staged"."""

import contextlib
import functools
import hashlib
import importlib.util
import os
import pathlib
import subprocess
import sys
import sysconfig
import types

import torch
import torch.distributed as dist

SOURCE = pathlib.Path(__file__).with_name("device.cpp")
OLDEST = (2, 11)


def build(folder):
    """Compiles it, unless the folder has it: a minute. By plain g++, as the headers of a wheel want no toolkit."""
    of_torch = pathlib.Path(torch.__file__).parent
    what = hashlib.sha256(SOURCE.read_bytes() + torch.__version__.encode() + sys.version.encode()).hexdigest()[:16]
    file = pathlib.Path(folder).resolve() / f"pretended_native.{what}.so"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        made = file.with_suffix(f".{os.getpid()}")
        include, libraries = of_torch / "include", of_torch / "lib"
        subprocess.run([*os.environ.get("CXX", "g++").split(), "-std=c++20", "-O0", "-shared", "-fPIC", "-fvisibility=hidden",
                        "-isystem", include, "-isystem", include / "torch/csrc/api/include",
                        "-isystem", sysconfig.get_path("include"), SOURCE, "-o", made, f"-L{libraries}",
                        "-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python", f"-Wl,-rpath,{libraries}"], check=True)
        made.replace(file)
    return file


def start(file):
    """Makes the device known to the torch of this process; gives the native module."""
    spec = importlib.util.spec_from_file_location("pretended_native", file)
    native = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(native)

    module = types.ModuleType("torch.pretended")
    module.is_available = module.is_initialized = lambda: True
    module._is_in_bad_fork = lambda: False  # pylint: disable=protected-access
    module.device_count = lambda: 2
    module.current_device = native.current_device
    module.device = functools.partial(_on, native)
    module.set_device = lambda device: native.set_device(_index(device))
    module.synchronize = lambda device=0: native.synchronize(_index(device))
    module.manual_seed_all = lambda seed: None
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    # As torch.cuda has them, and FSDP2 takes them of any device.
    module.Stream = lambda priority=0: torch.Stream(torch.device("pretended", native.current_device()))
    module.Event = lambda: torch.Event("pretended")
    module.current_stream = lambda device=None: torch.accelerator.current_stream(native.current_device() if device is None else device)
    module.stream = lambda stream: stream  # which is a context of its own
    torch.utils.rename_privateuse1_backend("pretended")
    torch._register_device_module("pretended", module)  # pylint: disable=protected-access

    def staged(store, rank, size, timeout):
        return native.Staged(dist.ProcessGroupGloo(dist.PrefixStore("staged", store), rank, size, timeout))
    dist.Backend.register_backend("staged", staged, devices=["pretended"])
    return native


@contextlib.contextmanager
def _on(native, device):
    before = native.current_device()
    native.set_device(_index(device))
    try:
        yield
    finally:
        native.set_device(before)


def _index(device):
    return device if isinstance(device, int) else torch.device(device).index or 0
