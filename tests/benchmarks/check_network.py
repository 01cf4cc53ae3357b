# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks `benchmarks/run.py network`: which dense allreduce is the best one, how each is launched, and a run on the
emulated cluster where namespaces can be made."""

import os
import shutil
import sys
from importlib import import_module

import pytest
from conftest import ROOT, read_rows, succeed
from gradients import table_of

sys.path.insert(0, str(ROOT / "benchmarks"))
network, tables = (import_module(f"driver.{name}") for name in ("network", "tables"))
sys.path.pop(0)

# What Gloo's benchmark prints on rank 0: bytes, elements, microseconds (least, median, 99 %, most), GB/s, iterations.
GLOO_PRINTS = """==========================================================================
                          NEW_ALLREDUCE_RING

Device:     tcp, pci=, iface=cluster, speed=10000, addr=[10.77.77.1]
Options:    processes=8, inputs=1, threads=1, verify=false

==========================================================================
                          BENCHMARK RESULTS

   size(B)    elements    min(us)    p50(us)    p99(us)    max(us)   avg(GB/s)    samples
  58913064    14728266     875321     877613     881007     881007       0.063          3

==========================================================================
"""


def rows_of(times, rate="1gbit"):
    """Rows of `network` with these seconds."""
    return [{"algorithm": name, "ranks": "8", "length": "1000", "k": "10", "step": str(step), "seconds": str(each),
             "select_seconds": "0.001", "words_sent_max": "100", "words_received_max": "100", "messages_sent_max": "6",
             "words_are_a_floor": "0", "rate": rate} for name, of in times.items() for step, each in enumerate(of)]


def in_one_line(text):
    return " ".join(text.split())


@pytest.mark.parametrize("name, expected", [
    ("dense", True), ("dense(mpi=ring)", True), ("dense (mpi=ring)", True), ("ring_pipelined", True),
    ("gloo/new_allreduce_ring", True), ("dense_rabenseifner(segment=4096)", True),
    ("dense_bfloat16", False), ("ring_chunked(codec=bfloat16)", False), ("ring_chunked_block_float8", False),
    ("ok_topk", False), ("gtopk", False), ("topk_a", False), ("ringlet", False)])
def test_baselines_send_every_value_as_it_is(name, expected):
    assert tables.is_baseline(name) == expected


def test_factors_are_against_the_best_dense():
    """Medians count, not single fast calls; what rounds its values is no baseline; a sparse scheme may lose."""
    said = tables.steps(rows_of({
        "ok_topk": [0.05, 0.05, 0.06], "dense": [1.8, 1.7, 1.75], "dense(mpi=ring)": [0.9, 1.0, 1.1], "topk_a": [2.0],
        "ring_pipelined": [0.5, 1.2, 1.3], "ring_chunked(codec=bfloat16)": [0.4, 0.4, 0.4]}))
    factors = {name: (cells["vs best"], cells["vs MPI"]) for name, cells in table_of(said).items()}
    assert (factors["ok_topk"], factors["topk_a"]) == (("20.00 x", "35.00 x"), ("0.50 x", "0.88 x"))
    assert factors["dense(mpi=ring)"][0] == "1.00 x"
    assert "Best dense allreduce: dense(mpi=ring), 1,000 ms; the MPI library's own choice (dense): 1,750 ms, " \
           "1.75 times as long." in in_one_line(said)
    assert "Gloo" not in said
    without = tables.steps(rows_of({"ok_topk": [0.05], "topk_a": [0.06]}))
    assert {cells["vs best"] for cells in table_of(without).values()} == {"-"}
    assert "Best dense" not in without


def test_every_rate_has_its_best():
    said = tables.steps(rows_of({"dense": [1.0], "ring_pipelined": [0.8]}) +
                        rows_of({"dense": [0.2], "ring_pipelined": [0.3]}, "10gbit"))
    flat = in_one_line(said)
    assert "1 Gbit/s: Best dense allreduce: ring_pipelined, 800.0 ms" in flat
    assert "10 Gbit/s: Best dense allreduce: dense, 200.0 ms, the MPI library's own choice." in flat


@pytest.mark.parametrize("names, subject", [
    (["gloo/new_allreduce_ring"], "gloo/new_allreduce_ring: called back to back"),
    (["dense", "gloo/new_allreduce_ring"], "The dense allreduces without a code: called back to back"),
    ([], None)])
def test_table_says_what_is_measured_back_to_back(names, subject):
    rows = [{**row, "back_to_back": "1" if row["algorithm"] in names else ""}
            for row in rows_of({"gloo/new_allreduce_ring": [1.0], "dense": [2.0], "ok_topk": [0.1]})]
    said = in_one_line(tables.steps(rows))
    assert subject in said if subject else "back to back" not in said


def test_rows_of_gloo():
    row, = network.gloo_rows(GLOO_PRINTS, 8)
    assert (row["length"], row["seconds"], row["words_sent_max"]) == (14728266, 0.877613, 25774466)
    with pytest.raises(SystemExit, match="Gloo"):
        network.gloo_rows("terminate called after throwing an instance of gloo::IoException", 8)


def test_launches():
    """A forced algorithm is another launch of the MPI library's own allreduce."""
    def launch(scheme, mpi="open_mpi", **options):
        return network.launch_of(scheme, mpi, "/bench", **options)

    name = "ok_topk(tau=32, format=packed)"
    rules = "--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm"
    assert launch(name, steps=3) == f"{name}|/bench|{name}|--steps 3|"
    assert launch("dense(mpi=ring)", steps=3) == f"dense(mpi=ring)|/bench|dense|--steps 3|{rules} 4"
    assert launch("dense( mpi = segmented_ring, segment=4096)").endswith(
        f"|dense||{rules} 5 --mca coll_tuned_allreduce_algorithm_segmentsize 4096")
    assert launch("dense(mpi=recursive_doubling)", "mpich").endswith(
        "|dense||-env MPIR_CVAR_ALLREDUCE_INTRA_ALGORITHM recursive_doubling")
    assert launch("gloo/allreduce_bcube", gloo="--elements 9", steps=2) == \
        "gloo/allreduce_bcube|gloo||--elements 9 --iteration-count 2 allreduce_bcube|"
    for scheme, program in (("dense", "/other"), ("dense(mpi=ring)", "/other"), ("ring_pipelined", "/other"),
                            ("ok_topk", "/bench"), ("ring_chunked(codec=bfloat16)", "/bench")):
        assert launch(scheme, back_to_back="/other").split("|")[1] == program


@pytest.mark.parametrize("scheme, mpi, sentence", [
    ("dense(mpi=quick)", "open_mpi", "no such allreduce; it has basic_linear, nonoverlapping"),
    ("dense(mpi=ring)", "mpich", "no such allreduce; it has recursive_doubling, reduce_scatter_allgather"),
    ("dense(mpi=ring, segment=4096)", "open_mpi", "only segmented_ring has segments"),
    ("gloo/new_allreduce_ring", "open_mpi", "name it with --gloo")])
def test_refuses_a_launch(scheme, mpi, sentence):
    with pytest.raises(SystemExit, match=sentence):
        network.launch_of(scheme, mpi, "/bench")


def test_numbers_are_those_of_open_mpi():
    """The algorithms of coll_tuned, as this Open MPI lists them."""
    if shutil.which("ompi_info") is None:
        pytest.skip("no ompi_info")
    listed = succeed("ompi_info", "--param", "coll", "tuned", "--level", 9, "--parsable")
    for name, options in network.FORCED["open_mpi"].items():
        assert f":param:coll_tuned_allreduce_algorithm:enumerator:value:{options.split()[-1]}:{name}" in listed


@pytest.fixture
def cluster(mpi_program):
    """The program under test, where it runs on the emulated cluster."""
    if network.mpi_of(mpi_program.path) != "open_mpi":
        pytest.skip("not for Open MPI")
    try:
        network.check(4)
    except SystemExit as reason:
        pytest.skip(str(reason))
    return mpi_program.path


def test_one_run_measures_all(cluster, tmp_path):
    """Sparse, dense, MPI's forced algorithms and Gloo's benchmark by turns. All values at the root, which basic_linear
    sends, take four times as long on a slow link as a ring."""
    gloo = tmp_path / "gloo benchmark"
    gloo.write_text(f"#!/bin/sh\necho \"$@\" >>'{tmp_path}/asked'\ncat <<'TEXT'\n{GLOO_PRINTS}TEXT\n")
    gloo.chmod(0o755)
    schemes = ["ok_topk(format=packed, values=bfloat16)", "dense(mpi=basic_linear)", "dense(mpi=ring)",
               "gloo/new_allreduce_ring"]
    said = succeed("python3", ROOT / "benchmarks" / "run.py", "network", "--bench", cluster, "--gloo", gloo,
                   "--ranks", 4, "--rate", "100mbit", "--length", 200000, "--steps", 3, "--dense-steps", 2, "--warmup", 1,
                   "--rounds", 2, "--csv", "rows.csv", "--algorithm", ",".join(schemes), cwd=tmp_path,
                   env={**os.environ, "TMPDIR": str(tmp_path)})
    rows = read_rows(tmp_path / "rows.csv")
    counts = {name: sum(row["algorithm"] == name for row in rows) for name in schemes}
    assert counts == dict(zip(schemes, (6, 4, 4, 2)))
    assert {row["rate"] for row in rows} == {"100mbit"}
    assert [row["algorithm"] for row in rows[:4]] == [schemes[0]] * 3 + [schemes[1]]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 2 * 4  # rounds and ranks
    assert all("--elements 200000 --warmup-iters 1 --iteration-count 2 new_allreduce_ring" in line for line in asked)
    times = {name: cells["time, ms"] for name, cells in table_of(said).items()}
    seconds = {name: float(text.rstrip(" ~").replace(",", "")) / 1e3 for name, text in times.items()}
    assert seconds["dense(mpi=basic_linear)"] > 1.7 * seconds["dense(mpi=ring)"]
    assert "Best dense allreduce: dense(mpi=ring)" in said
    assert "gloo/new_allreduce_ring: called back to back" in in_one_line(said)


def test_show_takes_several_files(driver, tmp_path):
    for name, times, rate in (("a.csv", {"dense": [1.0], "ok_topk": [0.1]}, "1gbit"),
                              ("b.csv", {"dense": [2.0], "ok_topk": [0.4]}, "100mbit")):
        import_module("driver.results").write(tmp_path / name, rows_of(times, rate))
    done = driver("show", "a.csv", "b.csv", cwd=tmp_path)
    assert done.returncode == 0 and "10.00 x" in done.stdout and "5.00 x" in done.stdout, done.stderr
    (tmp_path / "other.csv").write_text("algorithm,ranks,milliseconds\ndense,8,1\n")
    for arguments, sentence in ((["a.csv", "other.csv"], "the files are of several kinds"),
                                (["a.csv", "--shown", "dense, oktopk"], '--shown: the files have no scheme "oktopk"'),
                                (["other.csv", "--shown", "dense"], "--shown is for files of network")):
        done = driver("show", *arguments, cwd=tmp_path)
        assert done.returncode != 0 and sentence in done.stderr
