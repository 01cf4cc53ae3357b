# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Limits of tests: what hangs exceeds them, and a test has none of its own. Tiers: a test is in one."""

import json
import re

from conftest import run, succeed


def test_simulate_takes_a_long_seed_for_a_hang(program):
    done = run(program.path, "--seeds", 200, "--seed-seconds", 0.001)
    assert done.returncode == 3
    again = re.fullmatch(r"seed (\d+): \[hang\] more than 0.001 s of processor time\n  (.*)\n", done.stdout)
    assert again and again[2].endswith(f"--seeds 1 --first-seed {again[1]}")


def all_properties(program):
    """The properties of every test of the suite, by the test's name."""
    found = json.loads(succeed("ctest", "--test-dir", program.path.parents[2], "--show-only=json-v1"))["tests"]
    assert len(found) > 100
    return {each["name"]: {one["name"]: one["value"] for one in each["properties"]} for each in found}


def test_no_test_has_a_limit_of_its_own(program):
    assert not [name for name, properties in all_properties(program).items() if "TIMEOUT" in properties]


def test_each_test_has_one_tier(program):
    tiers = {name: properties.get("LABELS") for name, properties in all_properties(program).items()}
    assert not {name: tier for name, tier in tiers.items() if tier not in (["quick"], ["full"])}
    quick = {name for name, tier in tiers.items() if tier == ["quick"]}
    assert 500 < len(quick) < len(tiers)
    for room in ("algorithm", "catalogue", "codec", "comm", "core", "dense", "exchange", "format", "partition", "select",
                 "sgd", "sparse", "training"):
        assert any(name.startswith(f"{room}/") for name in quick), room
    assert "examples.bare_call" in quick
