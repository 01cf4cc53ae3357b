# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of tests: what hangs exceeds them, and a test has none of its own."""

import json
import re

from conftest import run, succeed


def test_simulate_takes_a_long_seed_for_a_hang(program):
    done = run(program.path, "--seeds", 200, "--seed-seconds", 0.001)
    assert done.returncode == 3
    again = re.fullmatch(r"seed (\d+): \[hang\] more than 0.001 s of processor time\n  (.*)\n", done.stdout)
    assert again and again[2].endswith(f"--seeds 1 --first-seed {again[1]}")


def test_no_test_has_a_limit_of_its_own(program):
    found = json.loads(succeed("ctest", "--test-dir", program.path.parents[2], "--show-only=json-v1"))["tests"]
    assert len(found) > 100
    limited = [each["name"] for each in found for one in each["properties"] if one["name"] == "TIMEOUT"]
    assert not limited
