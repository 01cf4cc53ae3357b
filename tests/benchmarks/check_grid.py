# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks `run.py grid`: a real point between two ranks over shared memory; check_tables.py checks its figures."""

import sys
from importlib import import_module

import pytest
from conftest import ROOT, run, succeed

sys.path.insert(0, str(ROOT / "benchmarks"))
grid, results = (import_module(f"driver.{name}") for name in ("grid", "results"))
sys.path.pop(0)

GRID = [sys.executable, ROOT / "benchmarks" / "run.py", "grid"]


def test_show_needs_points(tmp_path):
    done = run(*GRID, "--part", "show", "--results", tmp_path)
    assert done.returncode != 0 and "no point has been measured yet" in done.stderr


def test_a_rate_that_there_is_not(tmp_path):
    done = run(*GRID, "--rate", "3gbit", "--results", tmp_path)
    assert done.returncode != 0 and 'there is no "3gbit"' in done.stderr


def test_a_real_point_over_shared_memory(mpi_program, tmp_path):
    """One launch measures a point by turns and says all that the columns are for; the next run has nothing left."""
    command = [*GRID, "--bench", mpi_program.path, "--rate", "shared", "--ranks", 2, "--length", 1000, "--points", 180,
               "--seconds", 0.3, "--results", tmp_path]
    if grid.network.mpi_of(mpi_program.path) != "open_mpi":
        pytest.skip("not for Open MPI")
    said = succeed(*command)
    assert "3 of 180 points." in said
    rows = results.read(tmp_path / "grid.csv")
    points = grid.complete(rows)
    assert set(points) == {(2, 1000, "shared", density) for density in grid.DENSITIES}
    for of in points.values():
        assert {"dense", "ring_chunked", "ring_pipelined", "ok_topk", "ok_topk(format=packed)"} <= set(of)
        chosen = of["automatic"]["chosen"]
        assert chosen in of and of[chosen]["rounded"] == "0" and of["automatic(sums=rounded)"]["chosen"] in of
        assert all(float(row["seconds"]) > 0 and int(row["calls"]) > 0 for row in of.values())
        assert all(float(row["least_seconds"]) <= float(row["seconds"]) for row in of.values())
        assert int(of["dense"]["words"]) == 1000  # of two ranks 2n(P-1)/P
        assert float(of["automatic"]["measuring_seconds"]) > 0 and int(of["automatic"]["trial_calls"]) >= 3
        assert float(of["ok_topk"]["predicted"]) > 0
    before = (tmp_path / "grid.csv").read_bytes()
    succeed(*command)
    assert (tmp_path / "grid.csv").read_bytes() == before


@pytest.mark.parametrize("arguments, sentence", [
    (("--points", "1000"), "1000 is not LENGTH:DENSITY"),
    (("--points", "1000:0"), "1000:0 is not LENGTH:DENSITY"),
    (("--points", "1000:0.1", "--seconds", "-1"), "--seconds"),
    ((), "--points is required")])
def test_the_program_refuses(mpi_program, tmp_path, arguments, sentence):
    mpi_program.refuses(sentence, 2, *arguments, "--csv", tmp_path / "rows.csv")
