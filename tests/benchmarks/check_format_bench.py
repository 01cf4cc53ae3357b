# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs format_bench as a user would and checks what it writes, from outside."""

import importlib.util
import random

import pytest
from conftest import VERSION, read_rows, run, succeed
from gradients import medians_of, write_floats

QUICK = ["--benchmark_repetitions=2", "--benchmark_min_time=0"]
LOSSLESS = ["memcpy", "coo", "rice", "packed"]


@pytest.fixture
def medians(program, tmp_path):
    """Runs the program; gives the medians of each format, direction and input."""
    def measure(*arguments):
        rows = {}
        for each in medians_of(program, tmp_path, *QUICK, *arguments):
            assert each["entries_per_second"] > 0
            name, what, case = each["run_name"].split("/", 2)
            rows[name, what, case] = each
        return rows
    return measure


@pytest.mark.parametrize("length", [1, 300, 30000])
def test_kinds(medians, length):
    rows = medians("--n", length, "--density", "0.01,1", "--parts", "1,3")
    cases = {key[2] for key in rows}
    assert len(cases) == 16
    for (name, what, case), row in rows.items():
        assert what in ("encode", "decode")
        assert name not in LOSSLESS or row["value_error"] == 0
        if name in ("memcpy", "coo"):
            assert row["bits_per_entry"] == 64
        if "uniform" in case:
            share = float(case.split("density:")[1].split("/")[0])
            assert row["entries"] == max(1, round(share * length))
            assert row["messages"] == min(row["entries"], int(case.rsplit(":", 1)[1]))
        assert row["gap_entropy"] >= 0 and row["choice_bits"] >= -1e-6


def test_bits(medians):
    """On many entries at random the formats are about where theory has them."""
    rows = medians("--n", 400000, "--density", "0.05", "--input", "uniform", "--parts", 1)
    bits = {name: row["bits_per_entry"] for (name, what, _), row in rows.items()}
    least = rows["coo", "encode", "uniform/n:400000/density:0.05/parts:1"]["choice_bits"]
    assert least == pytest.approx(5.72, abs=0.02)  # the entropy of a bit of 5 %, times 20
    assert bits["rice"] - 32 - least < 0.4
    assert bits["packed_indices"] - least < 0.6
    assert bits["packed"] < 36 < bits["coo"]


def test_files(medians, tmp_path):
    draw = random.Random(5)
    for name in ("a.f32", "b.f32"):
        write_floats(tmp_path / name, [draw.gauss(0, 1) for _ in range(4000)])
    rows = medians("--files", f"{tmp_path / 'a.f32'},{tmp_path / 'b.f32'}", "--label", "mine",
                   "--density", "0.05", "--parts", 2)
    assert {key[2] for key in rows} == {"mine/n:4000/density:0.05/parts:2"}
    assert {(row["entries"], row["messages"]) for row in rows.values()} == {(400, 4)}


@pytest.mark.parametrize("sentence, arguments", [
    ("--n: 0 is no integer of at least 1", ["--n", 0]),
    ("--density: 0 is not a number over 0", ["--density", "0.5,0"]),
    ("--parts: 0 is no integer of at least 1", ["--parts", 0]),
    ("--input: must be uniform", ["--input", "nonsense"]),
    ("zzz", ["--n", 10, "--benchmark_filter=zzz"]),
    ("there is no input file", ["--files", "nowhere.f32"]),
    ("b.f32 has 6 values, and the first file 5", ["--files", "a.f32,b.f32"]),
    ("--nonsense", ["--nonsense"]),
])
def test_refuses(program, tmp_path, sentence, arguments):
    for name, length in (("a.f32", 5), ("b.f32", 6)):
        write_floats(tmp_path / name, [1.5] * length)
    done = run(program.path, *arguments, cwd=tmp_path)
    assert done.returncode == 1 and sentence in done.stderr


def test_driver(program, driver, tmp_path):
    """The command of run.py writes a table and a CSV file, of which `show` makes the same table."""
    rows = tmp_path / "rows.csv"
    picture = tmp_path / "picture.png" if importlib.util.find_spec("matplotlib") else "none"
    done = driver("formats", "--program", program.path, "--csv", rows, "--plot", picture, "--",
                  "--n", 2000, "--input", "uniform,clustered", "--density", 0.1, *QUICK)
    assert done.returncode == 0, done.stderr
    written = read_rows(rows)
    assert {row["input"] for row in written} == {"uniform", "clustered"}
    assert set(LOSSLESS) <= {row["format"] for row in written}
    assert picture == "none" or picture.stat().st_size > 1000
    shown = driver("show", rows)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.strip() in done.stdout


def test_version(program):
    assert succeed(program.path, "--version").startswith(f"format_bench {VERSION} (Kokkos ")
