# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs select_bench as a user would and checks what it writes, from outside."""

import json
import random

import pytest
from conftest import VERSION, run, succeed
from gradients import medians_of, numpy_file, write_floats

EXACT = ["kth", "kth_by_histograms", "refine"]


@pytest.fixture
def medians(program, tmp_path):
    """Runs the program; gives the medians of each selector and density."""
    def measure(*arguments):
        rows = {}
        for each in medians_of(program, tmp_path, *arguments):
            assert min(each[name] for name in ("real_time", "read_ratio", "rrw_ratio", "bytes_per_second")) > 0
            selector, length, density, _ = each["run_name"].split("/", 3)
            rows[selector, int(length[2:]), float(density[8:])] = each
        return rows
    return measure


@pytest.mark.parametrize("length", [1, 70, 50021])
@pytest.mark.parametrize("name", ["normal", "heavy_tailed", "constant", "one_bin", "denormal", "jumping"])
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
    write_floats(tmp_path / "gradient.f32", values)
    (tmp_path / "gradient.npy").write_bytes(numpy_file(values))
    rows = medians("--input", tmp_path / name, "--density", "0.05", "--n", 12, "--benchmark_filter=^(refine|fused)/")
    selected = {key: row["selected"] for key, row in rows.items()}
    assert selected == {("fused", 4000, 0.05): 200, ("refine", 4000, 0.05): 200}


@pytest.mark.parametrize("sentence, arguments", [
    ("--n: 0 is no integer of at least 1", ["--n", 0]),
    ("--density: 0 is not a number over 0", ["--density", "0.5,0"]),
    ("zzz", ["--benchmark_filter=zzz"]),
    ("there is no input file", ["--input", "nowhere.f32"]),
    ("has 2147483648 values; at most 2147483647 can be measured", ["--input", "large.f32"]),
    ("--nonsense", ["--nonsense"]),
    ("a repetition is one call", ["--benchmark_min_time=0.01"]),
    ("/nowhere/rows.csv", ["--n", 10, "--benchmark_out=/nowhere/rows.csv"]),
])
def test_refuses(program, tmp_path, sentence, arguments):
    with open(tmp_path / "large.f32", "wb") as large:
        large.truncate(4 * 2**31)
    done = run(program.path, *arguments, cwd=tmp_path)
    assert done.returncode == 1 and sentence in done.stderr


def test_version(program):
    assert succeed(program.path, "--version").startswith(f"select_bench {VERSION} (Kokkos ")
