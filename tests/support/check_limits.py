# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of tests: a busy machine exceeds none of them, and a test has none of its own."""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import SECONDS, run, succeed
from slowness import slowness


@pytest.fixture
def fuzz(program):
    """The fuzzer of the same build."""
    path = program.path.parents[1] / "fuzz" / "fuzz"
    assert path.exists()
    return path


@pytest.fixture
def one_core():
    """Binds this process, and what it starts, to one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def start(*command):
    return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def halt(process, seconds):
    """Takes all processor time from a process for a while, as a machine that is busy with others."""
    os.kill(process, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(process, signal.SIGCONT)


def test_slowness_is_what_others_take(one_core):  # pylint: disable=unused-argument,redefined-outer-name
    alone = slowness()
    others = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(5)]
    try:
        beside = slowness(1)
    finally:
        for each in others:
            each.kill()
            each.wait()
    assert alone >= 1
    assert beside > 2 * alone  # six times, but for what else has begun or ended meanwhile


def test_simulate_takes_a_long_seed_for_a_hang(program):
    done = run(program.path, "--seeds", 200, "--seed-seconds", 0.001)
    assert done.returncode == 3
    again = re.fullmatch(r"seed (\d+): \[hang\] more than 0.001 s of processor time\n  (.*)\n", done.stdout)
    assert again and again[2].endswith(f"--seeds 1 --first-seed {again[1]}")


def test_simulate_takes_no_busy_machine_for_a_hang(program):
    with start(program.path, "--seeds", 40, "--seed-seconds", 1, "--verbose") as process:
        said = process.stdout.readline()  # the second seed begins
        halt(process.pid, 2)
        said += process.communicate(timeout=SECONDS)[0]
    assert process.returncode == 0, said
    assert said.count("\nseed ") == 39 and "hang" not in said


def test_fuzz_takes_no_busy_machine_for_a_hang(fuzz):  # pylint: disable=redefined-outer-name
    with start(fuzz, "--seed", 1, "--cases", 300, "--case-seconds", 1) as process:
        children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while not children.read_text("ascii"):
            assert process.poll() is None
        halt(int(children.read_text("ascii")), 2)
        said = process.communicate(timeout=SECONDS)[0]
    assert process.returncode == 0, said
    assert "300 cases" in said and " 0 findings" in said


def test_no_test_has_a_limit_of_its_own(program):
    found = json.loads(succeed("ctest", "--test-dir", program.path.parents[2], "--show-only=json-v1"))["tests"]
    assert len(found) > 100
    limited = [each["name"] for each in found for one in each["properties"] if one["name"] == "TIMEOUT"]
    assert not limited
