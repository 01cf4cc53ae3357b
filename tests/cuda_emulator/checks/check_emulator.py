# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Runs the programs beside it on the emulator: what warps and streams do together, and the counts, must be right in each
mode, and each mistake must be named. What a single instruction gives is not checked here: where it were wrong, the suites
of the library would fail on the emulator. The folder of the programs is in OKTOPK_CUDA_EMULATOR_CHECKS."""

import os
import pathlib
import re
import signal
import subprocess

import pytest

MODES = [{}, {"LAZY": "1"}, {"SEED": "5"}, {"INITCHECK": "1"}]
HELD_BACK = {"LAZY": "1"}
CHECKED = {"INITCHECK": "1"}

# What the program does, the settings it needs, what must be said, and whether in a kernel; where nothing is said, the
# program has seen a wrong number, and where an error is returned, it has seen that.
SEEN = (3,)
ENDED = (-signal.SIGABRT, -signal.SIGSEGV)
MISTAKES = [
    ("bounds", {}, "write of 4 bytes at .* is out of bounds", True),
    ("freed", {}, "out of bounds of every allocation, or that was freed", True),
    ("unwritten", CHECKED, "read of 4 bytes at .* which nobody wrote", True),
    ("unwritten copy", CHECKED, "copy of 4 bytes from .* some that nobody wrote", False),
    ("host pointer", {}, "is no memory of the device; is it the host's?", True),
    ("device pointer", {}, "the host touched memory of the device", False),
    ("misaligned", {}, "4 bytes at .* which is no multiple of their number", True),
    ("shared bounds", {}, "of the block's shared memory, which has 128", True),
    ("shared memory of another kernel", {}, "of the block's shared memory, which has 128", True),
    ("endless copy", {}, "copy of 18446744073709551612 bytes at .* not of one allocation", False),
    ("kind of copy", {}, "copy from .* to .*, one of which is not where the kind 2 of the copy says", False),
    ("memset of the host", {}, "memset of 4 bytes at .*, which is no memory of the device", False),
    ("free on the host twice", {}, "free of .*, which is no page-locked memory that CUDA has given", False),
    ("destroyed stream", {}, "is no stream, or was destroyed", False),
    ("default stream", {}, "the default stream cannot be destroyed", False),
    ("copy bounds", {}, "memset of 404 bytes at .* not of one allocation", False),
    ("free twice", {}, "free of .* where no allocation begins", False),
    ("torn barriers", {}, "lanes .* wait here for others", True),
    ("parted warp", {}, "lanes .* wait here for others", True),
    ("other barriers", {}, "all warps of the block wait at barriers, and not at the same", True),
    ("mask", {}, "the mask 0000ffff does not have the bit of lane 16", True),
    ("other instruction", {"MAX_STEPS": "100000"}, "lanes .* wait here for others", True),
    ("odd barrier", {}, "there is no barrier 1 for 33 threads", True),
    ("barrier without all", {}, "all warps of the block wait at barriers, and not at the same", True),
    ("recursion", {}, "the stack of the device is full", True),
    ("hang", {"MAX_STEPS": "100000"}, "executed 1000.. instructions: does it hang", True),
    ("assertion", {}, "an assertion does not hold: n == 1, .*mistakes.cu", True),
    ("trap", {}, "CUDA emulator: trap", True),
    ("unknown instruction", {}, "does not know this instruction(.|\n)*=> .*add.rz.f32", True),
    ("unknown function", {}, r"cudaCreateTextureObject\(\) is not there", False),
    ("large block", {}, r"invalid configuration: <<<\(1, 1, 1\), \(2000, 1, 1\)", False),
    ("bounded block", {}, r"invalid configuration: <<<\(1, 1, 1\), \(65, 1, 1\)", False),
    ("shared memory of a launch", {}, r"invalid configuration: .* 49153, ", False),
    ("default stream and host", HELD_BACK, "", False),
    ("unordered streams", HELD_BACK, "", False),
    ("unordered host", HELD_BACK, "", False),
]


def run(program, *arguments, settings):
    folder = pathlib.Path(os.environ["OKTOPK_CUDA_EMULATOR_CHECKS"])
    environment = {**os.environ, **{f"OKTOPK_CUDA_EMULATOR_{name}": value for name, value in settings.items()}}
    return subprocess.run([folder / program, *arguments], capture_output=True, text=True, env=environment, check=False,
                          timeout=int(os.environ.get("OKTOPK_TEST_SECONDS", "120")))


@pytest.mark.parametrize("settings", MODES, ids=str)
def test_results_are_those_of_the_host(settings):
    done = run("kernels", settings=settings)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mistake, settings, said, in_kernel", MISTAKES, ids=[each[0] for each in MISTAKES])
def test_a_mistake_is_named(mistake, settings, said, in_kernel):
    done = run("mistakes", mistake, settings=settings)
    assert done.returncode in (SEEN if said == "" or re.search("invalid|is not there", said) else ENDED), done.stderr
    assert re.search(said, done.stderr), done.stderr
    if in_kernel:
        assert re.search(r"kernel .*\n    block \(.*, thread \(.*\n(.*\n)* +=> +\d+: ", done.stderr), done.stderr


@pytest.mark.parametrize("settings", MODES, ids=str)
def test_what_is_right_is_not_named(settings):
    done = run("mistakes", "none", settings=settings)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("mistake, settings", [(each[0], each[1]) for each in MISTAKES if each[1]])
def test_what_a_setting_finds_is_not_found_without_it(mistake, settings):
    if "MAX_STEPS" not in settings:  # without a limit a hang takes its time
        assert run("mistakes", mistake, settings={}).returncode == 0
