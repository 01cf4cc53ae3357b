# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Averages tensors of a device with oktopk_torch, on several processes: of a pretended one, which notices each wait that is missing.

It needs g++ and a torch of PyPI, 2.11 or newer, for whose headers it is compiled: that of the Python in OKTOPK_TEST_TORCH, or of
this one. OKTOPK_PRETENDED_DEVICE is a folder that keeps what was compiled, which takes a minute."""

import os
import pathlib
import shlex
import shutil
import sys

import pytest
from conftest import SECONDS, run, succeed

CASES = pathlib.Path(__file__).with_name("device_cases.py")
PYTHON = os.environ.get("OKTOPK_TEST_TORCH", sys.executable)
VERSION = "import torch; print(*torch.__version__.split('.')[:2])"
BUILD = f"""
import sys
sys.path.insert(0, {str(CASES.parent)!r})
import pretended_device
print(pretended_device.build(sys.argv[1]))
"""


@pytest.fixture(scope="session", name="device")
def device_that_is_built(tmp_path_factory):
    """The file of the pretended device."""
    found = run(PYTHON, "-c", VERSION)
    if found.returncode != 0 or tuple(map(int, found.stdout.split())) < (2, 11):
        pytest.skip(f"{PYTHON} has no torch 2.11 or newer, which the pretended device is written for (OKTOPK_TEST_TORCH names one)")
    if not shutil.which(shlex.split(os.environ.get("CXX", "g++"))[0]):
        pytest.skip("there is no compiler for the pretended device")
    folder = os.environ.get("OKTOPK_PRETENDED_DEVICE") or tmp_path_factory.mktemp("pretended_device")
    return succeed(PYTHON, "-c", BUILD, folder, timeout=5 * SECONDS).split()[-1]


@pytest.mark.parametrize("ranks", [2, 3])
def test_cases(device, ranks):
    assert "test_group_without_a_backend_of_the_cpu " in succeed(PYTHON, CASES, device, ranks, timeout=3 * SECONDS)


def test_nodes_of_two_ranks(device):
    cases = "test_nodes_have_the_bits_of_the_cpu", "test_nodes_with_an_engine_of_the_device", "test_fsdp2_between_replicas"
    assert f"{cases[-1]} " in succeed(PYTHON, CASES, device, 4, *cases, timeout=3 * SECONDS)
