# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs select_bench as a user would and checks what it writes, from outside."""

import json
import random
import struct

import pytest
from conftest import VERSION, run, succeed
from gradients import numpy_file

EXACT = ["kth", "kth_by_histograms", "refine"]


@pytest.fixture
def medians(program, tmp_path):
    """Runs the program; gives the medians of each selector and density, and what it prints."""
    def measure(*arguments):
        out = tmp_path / "out.json"
        said = succeed(program.path, "--benchmark_repetitions=3", f"--benchmark_out={out}",
                       *arguments)
        rows = {}
        for each in json.loads(out.read_text())["benchmarks"]:
            if each["aggregate_name"] == "median":
                assert f"{each['name']} " in said
                assert min(each["real_time"], each["read_ratio"], each["rrw_ratio"]) > 0
                assert each["bytes_per_second"] > 0
                selector, length, density, _ = each["run_name"].split("/", 3)
                rows[selector, int(length[2:]), float(density[8:])] = each
        return rows
    return measure


@pytest.mark.parametrize("length", [1, 70, 50021])
@pytest.mark.parametrize("name", ["normal", "heavy_tailed", "constant", "one_bin", "denormal",
                                  "jumping"])
def test_distribution(medians, length, name):
    rows = medians("--n", length, "--density", "0.001,0.3,1", "--input", name)
    assert {key[1:] for key in rows} == {(length, density) for density in (0.001, 0.3, 1)}
    assert {"read", "rrw", "fused", *EXACT} <= {key[0] for key in rows}
    for (selector, _, density), row in rows.items():
        if selector in EXACT or (selector, name) == ("fused", "normal"):
            assert row["selected"] == max(1, round(length * density))
        if (selector, name) == ("fused", "constant"):
            assert row["selected"] == length


def test_two_ranks(mpi_program, tmp_path):
    """Both measure; the first alone reports."""
    out = tmp_path / "out.json"
    said = succeed(*mpi_program.start(2), "--n", 50021, "--benchmark_filter=^(rrw|refine)/",
                   "--benchmark_repetitions=3", f"--benchmark_out={out}")
    assert said.count("refine/n:50021/density:0.01/normal/iterations:1_median") == 1
    written = json.loads(out.read_text())
    assert written["context"]["processes"] == "2"
    assert 500 in [each["selected"] for each in written["benchmarks"] if "refine" in each["name"]]


@pytest.mark.parametrize("name", ["gradient.f32", "gradient.npy"])
def test_file(medians, tmp_path, name):
    draw = random.Random(5)
    values = [draw.gauss(0, 1) for _ in range(4000)]
    (tmp_path / name).write_bytes(numpy_file(values) if name.endswith(".npy")
                                  else struct.pack("<4000f", *values))
    rows = medians("--input", tmp_path / name, "--density", "0.05", "--n", 12,
                   "--benchmark_filter=^(refine|fused)/")
    assert set(rows) == {("fused", 4000, 0.05), ("refine", 4000, 0.05)}
    assert {row["selected"] for row in rows.values()} == {200}


def test_figures(program):
    """A single quick run tells all figures."""
    said = succeed(program.path, "--n", 1000, "--benchmark_filter=fused|refine|kth|rrw",
                   "--benchmark_repetitions=2")
    for name in ("fused", "refine", "kth", "rrw"):
        assert f"{name}/n:1000/density:0.01/normal_median" in said
    for name in ("bytes_per_second", "read_ratio", "rrw_ratio", "selected"):
        assert f"{name}=" in said


@pytest.mark.parametrize("sentence, arguments", [
    ("--n: Value 0 not in range", ["--n", 0]),
    ("--density: 0 is not a number over 0", ["--density", "0.5,0"]),
    ("--density: 1.5 is not a number over 0", ["--density", 1.5]),
    ("--density: nan is not a number over 0", ["--density", "nan"]),
    ("zzz", ["--benchmark_filter=zzz"]),
    ("there is no input file", ["--input", "nowhere.f32"]),
    ("--nonsense", ["--nonsense"]),
    ("a repetition is one call", ["--benchmark_min_time=0.01"]),
    ("/nowhere/rows.csv", ["--n", 10, "--benchmark_out=/nowhere/rows.csv"]),
])
def test_refuses(program, sentence, arguments):
    done = run(program.path, *arguments)
    assert done.returncode == 1
    assert sentence in done.stderr and "Traceback" not in done.stderr


def test_refuses_other_file(program, tmp_path):
    (tmp_path / "gradient.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(4001))
    done = run(program.path, "--input", tmp_path / "gradient.h5")
    assert done.returncode == 1
    assert "is neither a NumPy file (.npy) nor raw little-endian float32" in done.stderr


def test_refuses_more_values_than_indices_can_name(program, tmp_path):
    with open(tmp_path / "large.f32", "wb") as large:
        large.truncate(4 * 2**31)
    done = run(program.path, "--input", tmp_path / "large.f32")
    assert done.returncode == 1
    assert "has 2147483648 values; at most 2147483647 can be measured" in done.stderr


def test_version(program):
    assert succeed(program.path, "--version").startswith(f"select_bench {VERSION} (Kokkos ")
