# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks `run.py grid`: its figures on rows that are made up, and a real point between two ranks over shared memory."""

import sys
from importlib import import_module

import pytest
from conftest import ROOT, run, succeed

sys.path.insert(0, str(ROOT / "benchmarks"))
grid, programs, results = (import_module(f"driver.{name}") for name in ("grid", "programs", "results"))
sys.path.pop(0)

GRID = [sys.executable, ROOT / "benchmarks" / "run.py", "grid"]
POINTS = grid.all_points()


def rows_of(point, times, chosen="ok_topk", predicted=None, **columns):
    """Rows of a point: seconds of each scheme. Those with `values=` round."""
    ranks, length, rate, density = point
    return [{**dict.fromkeys(grid.COLUMNS, "0"), "ranks": str(ranks), "length": str(length), "rate": rate,
             "density": f"{density:g}", "scheme": scheme,
             "chosen": chosen if scheme.startswith("automatic") else scheme,
             "rounded": str(int("values=" in scheme)), "predicted": str((predicted or {}).get(scheme, 0)),
             "seconds": str(seconds), "calls": "9", **columns} for scheme, seconds in times.items()]


TIMES = {"automatic": 1.1, "automatic(sums=rounded)": 0.6, "dense": 2.0, "ring_chunked": 1.25, "ring_pipelined": 1.4,
         "ok_topk": 1.0, "topk_a": 3.0, "ok_topk(format=packed(values=sign))": 0.5, "ring_chunked(codec=values=x)": 0.9}


def test_figures():
    """Four points: 1.10, 1.10, 1.10 and 1.30 times the best; of rounded ones 1.2 everywhere. The last one is slower
    than MPI's and the ring."""
    rows = [row for point in POINTS[:3] for row in rows_of(point, TIMES)]
    rows += rows_of(POINTS[3], {**TIMES, "automatic": 1.3, "dense": 1.1, "ring_chunked": 1.08}, switches="1")
    found = grid.figures(grid.points_of(rows))
    assert found["automatic"]["near"] == 0.75 and found["automatic(sums=rounded)"]["near"] == 0
    worst = {what: (pytest.approx(ratio), where.length) for what, (ratio, where) in found["automatic"]["worst"].items()}
    assert worst == {"best": (1.3, 1000000), "mpi": (1.3 / 1.1, 1000000), "ring": (1.3 / 1.08, 1000000)}
    assert found["automatic"]["above"] == {"mpi": [False], "ring": [False]}
    assert found["automatic"]["switches"] == 1
    said = grid.summary(grid.points_of(rows))
    assert "automatic: within 1.15 of the best fixed scheme on 75.0 % of the points." in said
    assert "worst: 1.30 times as long as the best fixed scheme (2 ranks, n = 1,000,000, links of 100 Mbit/s" in said
    assert "worst: 1.18 times as long as MPI's dense allreduce" in said and "above 1.15 at 1 points, at 0 of" in said


def test_show_prints_and_draws(tmp_path):
    rows = [row for point in POINTS[:60] for row in rows_of(point, TIMES, predicted={"automatic": 1, "ok_topk": 1.1})]
    results.write(tmp_path / "grid.csv", rows)
    done = run(*GRID, "--part", "show", "--results", tmp_path, "--pictures", tmp_path / "drawn")
    assert (done.returncode, done.stderr) == (0, "")
    assert "60 of 180 points." in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert len(lines) == 62
    cells = [cell.strip() for cell in lines[2].strip("| ").split("|")]
    assert cells == ["2, 100 Mbit/s", "1,000", "0.1", "ok_topk", "1,100", "1,000", "ok_topk", "1.10", "0.550", "0.880",
                     "1.20", "9"]
    if programs.has_matplotlib():
        assert {path.name for path in (tmp_path / "drawn").iterdir()} == {"grid_map.png", "grid_scatter.png"}


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
