# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Installs oktopk_torch with pip as a user does, trains two ranks without PYTHONPATH, and takes it away again."""

import os
import pathlib
import shutil
import sys
import time

from conftest import ROOT, SECONDS, VERSION, run, succeed

BUILD_SECONDS = 3 * SECONDS  # a module compiles for minutes, and for twice as many with the headers of torch 2.14

USES = """
import oktopk_torch
assert {"ok_topk", "dense"} <= set(oktopk_torch.algorithms())
print(oktopk_torch.__version__, sorted(oktopk_torch.__all__), oktopk_torch.__file__)
"""
RANK = """
import torch, torch.distributed as dist, oktopk_torch
dist.init_process_group("gloo")
ddp = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(100, 1))
state = oktopk_torch.state(ddp, "ok_topk(density=0.1)")
ddp.register_comm_hook(state, oktopk_torch.hook)
optimizer = torch.optim.SGD(ddp.parameters(), 0.01)
losses = []
for step in range(200):
    inputs = torch.randn(64, 100)
    loss = (ddp(inputs) - inputs.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    losses.append(loss.item())
assert losses[-1] < 0.5 * losses[0], losses
print(state.report())
"""


def venv(folder):
    """A new one that sees the packages of the system; its Python."""
    succeed(sys.executable, "-m", "venv", "--system-site-packages", folder)
    return folder / "bin" / "python3"


def test_install_and_uninstall(tmp_path):
    os.environ.pop("PYTHONPATH", None)
    source = tmp_path / "source"  # pip leaves a build folder beside pyproject.toml
    for name in ("cmake", "include", "python", "src", "packaging"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("build"))
    for name in ("CMakeLists.txt", "pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "README.md"):
        shutil.copy(ROOT / name, source)
    python, second = venv(tmp_path / "one"), venv(tmp_path / "two")
    succeed(python, "setup.py", "-q", "sdist", cwd=source)
    archive, = (source / "dist").glob("*.tar.gz")  # what it has is enough for a build
    began = time.monotonic()
    run_pip(python, "wheel", "--no-build-isolation", "--no-deps", "-w", tmp_path / "wheels", archive)
    wheel, = (tmp_path / "wheels").glob(f"oktopk_torch-{VERSION}*.whl")
    print(f"{wheel.name}: {wheel.stat().st_size} bytes, built in {time.monotonic() - began:.0f} s")
    program = tmp_path / "rank.py"
    program.write_text(RANK)
    for each in (python, second):
        run_pip(each, "install", "--no-deps", wheel)
        said = succeed(each, "-c", USES, cwd=tmp_path)
        assert said.startswith(VERSION) and str(pathlib.Path(each).parents[1]) in said
        # torchrun of torch 1.13 does not start on Python 3.11 without --redirects and --tee. That of Debian's 2.6 and 2.14,
        # built without libuv, starts with a store in a file alone: see docs/torch.md.
        said = succeed(each, "-m", "torch.distributed.run", "--rdzv_backend=c10d", "--rdzv_conf=store_type=file",
                       "--nproc_per_node=2", "--redirects", 1, "--tee", 1, "--log_dir", tmp_path / "logs", program,
                       cwd=tmp_path, env={**os.environ, "OMP_NUM_THREADS": "1", "USE_LIBUV": "0",
                                          "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"})
        assert said.count("which is ok_topk: 10 of 101 values") == 2, said
        files = {entry.name for entry in pathlib.Path(each).parents[1].glob("lib/python*/site-packages/oktopk_torch/*")}
        assert {"__init__.py", "__init__.pyi", "py.typed"} <= files
        run_pip(each, "uninstall", "-y", "oktopk-torch")
        assert run(each, "-c", "import oktopk_torch", cwd=tmp_path).returncode != 0


def test_the_number_of_jobs_is_that_of_the_environment(tmp_path):
    """pip's build tells CMake a number only where the variable does not."""
    stand_in = tmp_path / "cmake"
    stand_in.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n')
    stand_in.chmod(0o755)
    for level, says in ({"CMAKE_BUILD_PARALLEL_LEVEL": "1"}, False), ({}, True):
        environment = {name: each for name, each in os.environ.items() if name != "CMAKE_BUILD_PARALLEL_LEVEL"}
        environment.update(level, PATH=f"{tmp_path}:{os.environ['PATH']}")
        run(sys.executable, "setup.py", "-q", "build_ext", "--build-temp", tmp_path / "build", "--build-lib", tmp_path / "lib",
            cwd=ROOT, env=environment)  # which fails behind the build, since nothing was made
        calls = (tmp_path / "calls").read_text().splitlines()
        assert calls[-1].startswith("--build ") and calls[-1].endswith("--parallel") is says, calls


def run_pip(python, *arguments):
    """Without network: nothing is to be downloaded."""
    succeed(python, "-m", "pip", "--disable-pip-version-check", *arguments, timeout=BUILD_SECONDS,
            env={**os.environ, "PIP_NO_INDEX": "1", "PIP_BREAK_SYSTEM_PACKAGES": "1"})
