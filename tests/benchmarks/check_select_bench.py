# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs select_bench, alone and by `benchmarks/run.py select`, and checks what it writes."""

import json
import random
import struct

import pytest
from conftest import run, succeed
from gradients import read_rows

COLUMNS = ["selector", "length", "density", "input", "seconds", "read_ratio", "rrw_ratio",
           "selected"]
EXACT = ["kth", "kth_by_histograms", "refine"]
INPUTS = ["normal", "heavy_tailed", "constant", "one_bin", "denormal", "jumping"]


def check_selected(row):
    """How many entries are selected; `row` is one of the driver's."""
    k = max(1, round(int(row["length"]) * float(row["density"])))
    if row["selector"] in EXACT or (row["selector"], row["input"]) == ("fused", "normal"):
        assert int(row["selected"]) == k
    if (row["selector"], row["input"]) == ("fused", "constant"):
        assert row["selected"] == row["length"]
    assert all(float(row[each]) > 0 for each in ("seconds", "read_ratio", "rrw_ratio"))


@pytest.fixture
def select(driver, program, tmp_path):
    """The rows that the driver writes."""
    def measure(*arguments):
        done = driver("select", "--bench", program.path, *arguments, "--csv", "rows.csv",
                      "--", "--benchmark_repetitions=3", cwd=tmp_path)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        assert done.stdout.count("\n|") == 2 + len(read_rows(tmp_path / "rows.csv"))
        return read_rows(tmp_path / "rows.csv")
    return measure


def test_distributions(select):
    rows = select("--length", "1,70,50021", "--density", "0.001,0.3,1", "--input", ",".join(INPUTS))
    assert list(rows[0]) == COLUMNS
    assert {row["input"] for row in rows} == set(INPUTS)
    assert {row["length"] for row in rows} == {"1", "70", "50021"}
    assert {row["density"] for row in rows} == {"0.001", "0.3", "1"}
    assert {"read", "rrw", "fused", *EXACT} <= {row["selector"] for row in rows}
    for row in rows[2:]:
        if row["selector"] not in ("read", "rrw"):
            check_selected(row)


def test_two_ranks(mpi_program, tmp_path):
    """Both measure; the first alone reports."""
    out = tmp_path / "out.json"
    said = succeed(*mpi_program.start(2), "--n", 50021, "--benchmark_filter=^(rrw|refine)/",
                   "--benchmark_repetitions=3", f"--benchmark_out={out}")
    assert said.count("refine/n:50021/density:0.01/normal/iterations:1_median") == 1
    written = json.loads(out.read_text())
    assert written["context"]["processes"] == "2"
    assert 500 in [each["selected"] for each in written["benchmarks"] if "refine" in each["name"]]


def test_file(select, tmp_path):
    draw = random.Random(5)
    values = [draw.gauss(0, 1) for _ in range(4000)]
    (tmp_path / "gradient.f32").write_bytes(struct.pack("<4000f", *values))
    rows = select("--input", "gradient.f32", "--density", "0.05", "--length", "12,13",
                  "--selector", "refine,fused")
    assert sorted(row["selector"] for row in rows) == ["fused", "read", "refine", "rrw"]
    assert {row["length"] for row in rows} == {"4000"}
    assert {row["selected"] for row in rows if row["selector"] in ("fused", "refine")} == {"200"}


def test_two_builds_by_turns(select, program):
    rows = select("--bench", f"{program.path},{program.path}", "--length", 1000, "--density", 0.01,
                  "--input", "normal", "--selector", "refine", "--rounds", 2)
    assert list(rows[0]) == ["build", *COLUMNS]


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
    ("--density: must be over 0", ["--density", "0.5,0"]),
    ("--density: must be over 0", ["--density", 1.5]),
    ("--density: must be over 0", ["--density", "nan"]),
    ("zzz", ["--benchmark_filter=zzz"]),
    ("there is no input file", ["--input", "nowhere.f32"]),
    ("--nonsense", ["--nonsense"]),
    ("/nowhere/rows.csv", ["--n", 10, "--benchmark_out=/nowhere/rows.csv"]),
])
def test_refuses(program, sentence, arguments):
    done = run(program.path, *arguments)
    assert done.returncode == 1
    assert sentence in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("start", [b"\x93NUMPY\x01\x00", b"\x89HDF\r\n\x1a\n"])
def test_refuses_foreign_file(program, tmp_path, start):
    (tmp_path / "gradient.npy").write_bytes(start + bytes(4000))
    done = run(program.path, "--input", tmp_path / "gradient.npy")
    assert done.returncode == 1
    assert ".tofile('gradient.f32')" in done.stderr
