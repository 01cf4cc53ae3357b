# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks `run.py grid`: the order of the points, what is measured next, its figures on rows that are made up, and a
real point between two ranks over shared memory."""

import collections
import sys
import types
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


def complete_rows(points):
    return [row for point in points
            for row in rows_of(point, {"automatic": 1, "automatic(sums=rounded)": 1, "dense": 2, "ok_topk": 1})]


def given(tmp_path, **options):
    return types.SimpleNamespace(**{"results": tmp_path, "points": None, "minutes": None, "rate": list(grid.RATES),
                                    "ranks": None, "length": None, **options})


def test_every_point_comes_once():
    assert len(POINTS) == len(set(POINTS)) == 180
    assert {tuple(sorted(set(values))) for values in map(set, zip(*POINTS))} == {
        tuple(sorted(values)) for values in (grid.RANKS, grid.LENGTHS, grid.RATES, grid.DENSITIES)}


@pytest.mark.parametrize("count", range(60, 181))
def test_every_prefix_is_even(count):
    """The values of a coordinate come equally often, but for the five points of one launch."""
    for values in zip(*POINTS[:count]):
        counts = collections.Counter(values)
        assert max(counts.values()) - min(counts.values()) <= 5
    pairs = {(ranks, length, rate) for ranks, length, rate, _ in POINTS[:count]}
    assert len(pairs) == 60


def test_what_is_measured_is_not_measured_again(tmp_path):
    first = next(iter(grid.launches()))
    rows = complete_rows(POINTS[:2]) + complete_rows(POINTS[5:7])
    # The third point was interrupted: its rows do not count, and it is measured anew.
    results.write(tmp_path / "grid.csv", rows + complete_rows(POINTS[2:3])[:2])
    kept = grid.kept(given(tmp_path))
    assert kept == rows
    left = list(grid.missing(given(tmp_path), kept))
    assert left[0] == (*first[:2], first[2][2:]) and len(left[1][2]) == 3
    assert sum(len(points) for _, _, points in left) == 176
    assert list(grid.missing(given(tmp_path, points=3), kept)) == [(*first[:2], first[2][2:3])]
    assert {rate for _, rate, _ in grid.missing(given(tmp_path, rate=["shared"]), kept)} == {"shared"}
    assert {ranks for ranks, _, _ in grid.missing(given(tmp_path, ranks=4), kept)} == {4}
    assert {point[0] for *_, points in grid.missing(given(tmp_path, length=1000), kept) for point in points} == {1000}


def test_an_interruption_keeps_what_was_measured(tmp_path, monkeypatch):
    """The launch that fails is the third; the next run begins with it."""
    started = []

    def launch(_, ranks, rate, points, __):
        started.append((ranks, rate, points))
        if len(started) == 3:
            raise KeyboardInterrupt
        return complete_rows([(ranks, length, rate, density) for length, density in points])

    monkeypatch.setattr(grid, "measure_launch", launch)
    with pytest.raises(KeyboardInterrupt):
        grid.run_measure(given(tmp_path, points=20))
    assert len(grid.complete(results.read(tmp_path / "grid.csv"))) == 10
    grid.run_measure(given(tmp_path, points=20))
    assert len(started) == 5 and started[2] == started[3]
    assert list(grid.complete(results.read(tmp_path / "grid.csv"))) == POINTS[:20]
    grid.run_measure(given(tmp_path, points=20))
    assert len(started) == 5


def test_minutes_bound_a_run(tmp_path, monkeypatch):
    now = [0.0]

    def launch(_, ranks, rate, points, left):
        assert left <= 60 - now[0]
        now[0] += 25
        return complete_rows([(ranks, length, rate, density) for length, density in points])

    monkeypatch.setattr(grid, "measure_launch", launch)
    monkeypatch.setattr(grid.time, "monotonic", lambda: now[0])
    grid.run_measure(given(tmp_path, minutes=1))
    assert now[0] == 75  # the last one begins before the end


TIMES = {"automatic": 1.1, "automatic(sums=rounded)": 0.6, "dense": 2.0, "ring_chunked": 1.25, "ring_pipelined": 1.4,
         "ok_topk": 1.0, "topk_a": 3.0, "ok_topk(format=packed(values=sign))": 0.5, "ring_chunked(codec=values=x)": 0.9}


def test_a_point_is_compared_with_what_may_be_chosen():
    point = grid.points_of(rows_of(POINTS[0], TIMES))[0]
    assert point.best["automatic"] == "ok_topk" and point.over_best("automatic") == pytest.approx(1.1)
    rounded = "automatic(sums=rounded)"
    assert point.best[rounded] == "ok_topk(format=packed(values=sign))"
    assert point.over_best(rounded) == pytest.approx(1.2)
    assert point.ring == "ring_chunked" and point.over("automatic", point.ring) == pytest.approx(0.88)
    assert point.over("automatic", "dense") == pytest.approx(0.55)


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


def test_what_is_faster_than_the_rate_of_the_links_is_said():
    """An emulated link that was idle lets a short call through at once."""
    rows = rows_of(POINTS[0], {name: 1e-4 * seconds for name, seconds in TIMES.items()} | {"automatic": 3e-4})
    for row in rows:
        row["words"] = "1000" if row["scheme"] == "dense" else "600"
    point = grid.points_of(rows)[0]
    assert point.rate == "100mbit"
    assert point.beats_links("dense") and not point.beats_links("topk_a")  # 320 us, and 192
    assert grid.figures([point])["automatic"]["above"] == {"mpi": [True], "ring": [True]}
    assert "above 1.15 at 1 points, at 1 of them it is faster than the links' rate allows" in grid.summary([point])


def test_errors_of_predictions():
    """Over what was measured, of those that are predicted: 10, 30 and 50 % of automatic; 10 and 20 % of others."""
    rows = []
    for point, error in zip(POINTS, (0.9, 1.3, 0.5)):
        rows += rows_of(point, TIMES, predicted={"automatic": error * 1.1, "ok_topk": 1.1, "dense": 1.6})
    points = grid.points_of(rows)
    assert grid.figures(points)["automatic"]["error"] == pytest.approx(0.3)
    assert "Predictions of 6 fixed schemes: median error 15.0 %." in grid.summary(points)
    assert "median error of its prediction: 30.0 %" in grid.summary(points)


def test_seconds_of_construction():
    rows = [row for point, seconds in zip(POINTS[:5], (0.1, 0.2, 0.3, 0.4, 0.9))
            for row in rows_of(point, TIMES, measuring_seconds=str(seconds), making_seconds="0.05")]
    rows += rows_of(next(each for each in POINTS if each[0] == 8), TIMES, measuring_seconds="0.7")
    said = grid.summary(grid.points_of(rows))
    assert "Construction with 2 ranks: 0.35 s in the median, 0.95 s at most." in said
    assert "Construction with 8 ranks: 0.70 s in the median, 0.70 s at most." in said


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
