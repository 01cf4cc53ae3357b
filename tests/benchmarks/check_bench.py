# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs oktopk_bench on good and bad input and checks what it writes, from outside.

Knows nothing of the library: reads the files of --dump and --csv with the standard library alone,
and compares them with Topk(sum_i Topk(acc_i)) computed here, ties to the lower index.
"""

import math
import os
import pathlib
import random
import re
import subprocess

import pytest
from conftest import VERSION, Program, read_rows, run, succeed
from gradients import (crowded, full_of_ties, heavy_tailed, mostly_nothing, numpy_file, read_dump, top, write_floats,
                       write_inputs)

COLUMNS = ["algorithm", "ranks", "length", "k", "step", "seconds", "select_seconds",
           "words_sent_max", "words_received_max", "messages_sent_max", "local_selected_max",
           "global_selected", "bound_words", "words_are_a_floor", "own_seconds",
           "own_select_seconds", "output_density", "xi", "captured", "captured_by_top_k"]


@pytest.fixture
def tool(request):
    """The program, with ranks in its own process or of MPI."""
    return request.getfixturevalue({"mpi": "mpi_program"}.get(request.param, "program"))


def starts(in_process, mpi):
    """Ranks in the program's own process, and those of MPI: pairs of `tool` and `ranks`."""
    return [("in process", ranks) for ranks in in_process] + [("mpi", ranks) for ranks in mpi]


on_two = pytest.mark.parametrize("tool, ranks", starts([2], [2]), indirect=["tool"])


# --- good input -----------------------------------------------------------------------------------


def check_exact(folder, accumulators, k, scheme="ok_topk"):
    """The dump of each rank is Topk(sum_i Topk(acc_i)) with values and contributions; sums are exact."""
    selections = [set(top({i: abs(x) for i, x in enumerate(acc)}, k)) for acc in accumulators]
    sums = {i: sum(acc[i] for acc, mine in zip(accumulators, selections) if i in mine)
            for i in set().union(*selections)}
    expected = top({i: abs(x) for i, x in sums.items()}, k)
    for rank, chosen in enumerate(selections):
        values, contributed = [sums[i] for i in expected], sorted(chosen & set(expected))
        assert read_dump(folder, scheme, rank) == (expected, values, contributed)


def check_csv(path, algorithms, ranks, length, k, steps):
    rows = read_rows(path)
    assert list(rows[0]) == COLUMNS
    expected = [(name, str(step)) for name in algorithms for step in range(steps)]
    assert [(row["algorithm"], row["step"]) for row in rows] == expected
    for row in rows:
        dense = row["algorithm"] == "dense"
        assert (int(row["ranks"]), int(row["length"])) == (ranks, length)
        assert int(row["k"]) == (length if dense else k)
        assert float(row["seconds"]) > 0 and float(row["select_seconds"]) >= 0
        sent = float(row["words_sent_max"])
        assert (sent > 0) == (ranks > 1)
        assert (int(row["messages_sent_max"]) > 0) == (ranks > 1)
        if dense:
            assert row["local_selected_max"] == row["global_selected"] == str(length)
            assert sent <= float(row["bound_words"])


@pytest.mark.parametrize("tool, ranks, kind, length, k", [
    *((*start, full_of_ties, 1500, 111) for start in starts([1, 2, 3, 4, 5, 8], [2, 4])),
    # None, one, all; fewer entries than ranks; fewer than k that are not zero.
    *((*start, full_of_ties, *case) for start in starts([8], [4])
      for case in ((400, 0), (400, 1), (400, 400), (start[1] - 1, 2))),
    *((*start, mostly_nothing, 900, 100) for start in starts([8], [4])),
], indirect=["tool"])
def test_exact(tmp_path, tool, ranks, kind, length, k):
    accumulators, patterns = write_inputs(tmp_path, kind, ranks, length, 2, ranks * length + k)
    dump = tmp_path / "deep" / "dump"
    tool.succeed(ranks, "--algorithm", "ok_topk,dense", "--input", patterns, "--k", k, "--dump", dump,
                 "--csv", tmp_path / "rows.csv")
    check_exact(dump, accumulators, k)
    check_exact(dump, accumulators, length, "dense")
    check_csv(tmp_path / "rows.csv", ["ok_topk", "dense"], ranks, length, k, 2)
    assert len(list(dump.iterdir())) == 6 * ranks, "other files in the folder of dumps"


@on_two
def test_checked_messages(tmp_path, tool, ranks):
    """The same results, and each message is followed by a seal of 64 bytes."""
    if tool.run(ranks, *PLAIN, "--checked").returncode != 0:
        tool.refuses("built without xxHash", ranks, *PLAIN, "--checked")
        pytest.skip("the program was built without xxHash")
    assert "messages checked" in tool.succeed(ranks, *PLAIN, "--checked")
    accumulators, patterns = write_inputs(tmp_path, full_of_ties, ranks, 2001, 2, 5)
    rows = {}
    for name, more in (("plain", []), ("checked", ["--checked"])):
        tool.succeed(ranks, "--algorithm", "ok_topk", "--input", patterns, "--k", 40,
                     "--dump", tmp_path / name, "--csv", tmp_path / f"{name}.csv", *more)
        check_exact(tmp_path / name, accumulators, 40)
        rows[name] = read_rows(tmp_path / f"{name}.csv")
    for plain, checked in zip(rows["plain"], rows["checked"]):
        messages = int(plain["messages_sent_max"])  # of each rank
        assert int(checked["messages_sent_max"]) == 2 * messages
        assert float(checked["words_sent_max"]) == float(plain["words_sent_max"]) + 16 * messages


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_over_tcp(tmp_path, monkeypatch, mpi_program, ranks):
    """The same results, verified, in as many messages."""
    accumulators, patterns = write_inputs(tmp_path, full_of_ties, ranks, 2001, 2, 5)
    rows = {}
    for name, more in (("mpi", []), ("tcp", ["--over-tcp"])):
        mpi_program.succeed(ranks, "--algorithm", "ok_topk,dense", "--input", patterns, "--k", 40, "--dump", tmp_path / name,
                            "--csv", tmp_path / f"{name}.csv", *more)
        check_exact(tmp_path / name, accumulators, 40)
        rows[name] = [int(row["messages_sent_max"]) for row in read_rows(tmp_path / f"{name}.csv")]
    assert rows["tcp"][0] == rows["mpi"][0]
    if ranks > 1:  # so it is sockets that these messages go over
        monkeypatch.setenv("GLOO_SOCKET_IFNAME", "eth987")
        refused = mpi_program.run(ranks, *PLAIN, "--over-tcp")
        assert refused.returncode != 0 and "'eth987' is neither a network interface" in refused.stderr


@pytest.mark.parametrize("tool", ["in process", "mpi"], indirect=True)
@pytest.mark.parametrize("ranks, codec, share", [
    (4, "codec=bfloat16", 0.5),
    (4, "codec=block_float", 8.25 / 32),
    (2, "codec=block_float, rate=12, codec_level=message", 12.25 / 32),
])
def test_codec(tmp_path, tool, ranks, codec, share):
    """A coded algorithm sends that share of the words of the plain one."""
    plain = ["ring_chunked", "recursive_doubling"]
    coded = [f"{each}({codec})" for each in plain]
    tool.succeed(ranks, "--algorithm", ", ".join(plain + coded), "--length", 200_000, "--k", 1,
                 "--steps", 1, "--csv", tmp_path / "rows.csv")
    sent = {row["algorithm"]: float(row["words_sent_max"])
            for row in read_rows(tmp_path / "rows.csv")}
    assert list(sent) == plain + coded
    for one, other in zip(plain, coded):
        assert sent[other] / sent[one] == pytest.approx(share, abs=0.01)


@on_two
def test_control_lists_every_message_by_its_purpose(tmp_path, tool, ranks):
    """Between two ranks the messages add up to those of the table; the words are of the rank with most for a purpose."""
    said = tool.succeed(ranks, "--algorithm", "ok_topk,topk_a", "--length", 4000, "--density", 0.05, "--steps", 2,
                        "--control", "--csv", tmp_path / "rows.csv")
    parts = said.split("by the rank that sends most for the purpose:\n")[1].split("topk_a\n")
    for name, part in zip(("ok_topk", "topk_a"), parts):
        last = [row for row in read_rows(tmp_path / "rows.csv") if row["algorithm"] == name][-1]
        sent = re.findall(r"^  ([a-z]+) +(\d+) messages +(\S+) words", part, re.M)
        assert [use for use, *_ in sent] == ["control", "partition", "threshold", "reduce", "balance", "gather"]
        assert sum(int(messages) for _, messages, _ in sent) == int(last["messages_sent_max"])
        words, most = [float(words) for *_, words in sent], float(last["words_sent_max"])
        assert max(words) <= most <= sum(words) + 3 and sum(words) < 1.2 * most


# --- NumPy files ----------------------------------------------------------------------------------

TIMES = {"seconds", "select_seconds", "own_seconds", "own_select_seconds"}


def figures_of(folder, tool, ranks, pattern):
    """The table but for its times, and the results, of files of that pattern."""
    tool.succeed(ranks, "--algorithm", "ok_topk,dense,gtopk", "--input", folder / pattern,
                 "--k", 60, "--quality", "--csv", folder / "rows.csv", "--dump", folder / "dump")
    rows = [{name: value for name, value in row.items() if name not in TIMES}
            for row in read_rows(folder / "rows.csv")]
    return rows, {path.name: path.read_bytes() for path in (folder / "dump").iterdir()}


@on_two
def test_numpy_files_are_the_same_gradients(tmp_path, tool, ranks):
    """Raw float32 and NumPy's files give the same figures and results to the bit; test_npy.cpp has the other forms."""
    rng = random.Random(4)
    # Values that all three types have.
    gradients = [[rng.randint(-2047, 2047) / 1024 for _ in range(3000)] for _ in range(ranks)]
    for rank, values in enumerate(gradients):
        write_floats(tmp_path / f"raw.{rank}.f32", values)
    expected = figures_of(tmp_path, tool, ranks, "raw.{rank}.f32")
    assert len(expected[0]) == 3 and len(expected[1]) == 9 * ranks
    for how in ({}, {"kind": ">f8", "shape": "(3, 20, 50)", "version": 3}, {"kind": "<f2", "version": 2}):
        for rank, values in enumerate(gradients):
            (tmp_path / f"gradient.{rank}.npy").write_bytes(numpy_file(values, **how))
        assert figures_of(tmp_path, tool, ranks, "gradient.{rank}.npy") == expected, how


def test_numpy_itself(tmp_path, program):
    """The line of Python in the documentation writes files that are read."""
    numpy = next((python for python in ("python3", "/usr/bin/python3")
                  if run(python, "-c", "import numpy").returncode == 0), None)
    if numpy is None:
        pytest.skip("no numpy")
    succeed(numpy, "-c", "import numpy\n"
            "for rank in range(2):\n"
            "    g = numpy.random.default_rng(rank).normal(size=(30, 50)).astype('float32')\n"
            "    numpy.save(f'gradient.{rank}.npy', g)\n"
            "    g.tofile(f'raw.{rank}.f32')\n", cwd=tmp_path)
    assert (figures_of(tmp_path, program, 2, "gradient.{rank}.npy")
            == figures_of(tmp_path, program, 2, "raw.{rank}.f32"))


# --- what the tool says of itself -----------------------------------------------------------------


SPARSE = ["ok_topk", "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k"]


# The program compares each result with a reference of its own; test_verify.cpp has what it finds.
@pytest.mark.parametrize("tool, ranks, kind, schemes", [
    *((*start, heavy_tailed, [
        "ok_topk(local_select=reused, global_select=reused, tau_prime=2)", "ok_topk(global_select=reused,tau=1)",
        "paper_ok_topk(tau_prime=2)", "ring", "ring_chunked", "ring_pipelined", "halving_doubling",
        "recursive_doubling"])
      for start in starts([1, 2, 3, 4, 5, 8], [2, 4])),
    *((*start, crowded, ["ok_topk(global_select=reused,tau=1)", "paper_ok_topk(tau=1)",
                         *(f"ok_topk(partition={regions})" for regions in ("uniform", "balanced", "sampled(check_from=0)"))])
      for start in starts([8], [4])),
    *((*start, heavy_tailed, [f"{scheme}(format=packed, values={values})" for scheme in SPARSE])
      for start in starts([1, 3], [3]) for values in ("exact", "bfloat16", "fixed8", "fixed4", "fixed2", "sign")),
], indirect=["tool"])
def test_verifies(tmp_path, tool, ranks, kind, schemes):
    _, patterns = write_inputs(tmp_path, kind, ranks, 3001, 4, ranks)
    tool.succeed(ranks, "--algorithm", ",".join(schemes), "--input", patterns, "--density", 0.02, "--steps", 9)


@on_two
@pytest.mark.parametrize("option, words", [("--help", "--no-verify"), ("--list", "ring_chunked:"),
                                           ("--version", f"oktopk_bench {VERSION} (Kokkos ")])
def test_texts(tool, ranks, option, words):
    """One rank alone writes them."""
    assert tool.succeed(ranks, option).count(words) == 1


def test_says_when_ranks_outnumber_cores(program, mpi_program):
    cores = len(os.sched_getaffinity(0))
    if cores > 8:
        pytest.skip("too many cores to outnumber")
    few = ["--algorithm", "dense", "--length", 1000, "--k", 10, "--steps", 1]
    note = f"note: {cores + 1} ranks share {cores} core"
    done = mpi_program.run(cores + 1, *few)
    assert done.returncode == 0 and done.stderr.count(note) == 1, done.stderr
    assert "times are no guide" in done.stderr
    # Not where they do not, nor of ranks that take turns in one process.
    assert "note:" not in mpi_program.run(1, *few).stderr
    assert "note:" not in program.run(cores + 1, *few).stderr


# --- bad input ------------------------------------------------------------------------------------


SOURCE = ["--algorithm", "ok_topk", "--length", 1000]
PLAIN = [*SOURCE, "--k", 10]
# A fault of each option and what the message must contain: each is looked at before anything is measured. What else is
# wrong with numbers and with texts of schemes have test_options.cpp and tests/catalogue.
BAD_OPTIONS = [
    (["--length", 1000, "--k", 10], "--algorithm"),
    (["--algorithm", "dense,dense", *PLAIN[2:]], "twice"),
    (["--algorithm", "ok_topk(tau=0)", *PLAIN[2:]], "tau = 0 of sampled is not positive"),
    (["--algorithm", "ring_chunked(codec=zfp, codec_level=message)", *PLAIN[2:]], "zfp"),  # loses, or is not there
    ([*PLAIN, "--colour", "red"], "not expected: --colour red"),
    ([*PLAIN, "--kokkos-colour=red"], "--kokkos-colour"),
    ([*PLAIN, "--seed", -1], "--seed: -1 is no integer of at least 0"),
    ([*PLAIN, "--deadline", "nan"], "nan is no number of 0 or more"),
    ([*PLAIN, "--density", 0.1], "[--density,--k]"),
    (SOURCE, "[--density,--k]"),
    ([*PLAIN, "--input", "x.{rank}"], "[--length,--input]"),
    ([*SOURCE, "--k", 1001], "1001"),
    ([*SOURCE, "--k", -1], "--k: -1 is no integer of at least 0"),
    ([*SOURCE, "--density", 1.5], "--density: 1.5 is not a number over 0 and at most 1"),
    (["--algorithm", "ok_topk", "--length", 3_000_000_000, "--k", 5], "3000000000"),
    ([*PLAIN, "--steps", 0], "--steps: 0 is no integer of at least 1"),
    ([*PLAIN, "--warmup", 2**62], f"--warmup: {2**62} is more than 1000000000"),
    (["--algorithm", "dense", "--input", "gradient.f32", "--k", 1], "{rank}"),
]


def content(text):
    return lambda path: path.write_bytes(text)


VALUES = [0.25] * 500
# What is done to the file of one rank, and what the message must contain.
BAD_FILES = {
    "missing": (pathlib.Path.unlink, "there is no input file"),
    "a folder": (lambda path: (path.unlink(), path.mkdir()), "no regular file"),
    "empty": (content(b""), "is empty"),
    "no multiple of 4": (lambda path: path.write_bytes(path.read_bytes()[:-2]), "no multiple of 4"),
    "cut short": (lambda path: path.write_bytes(path.read_bytes()[:-8]), "values"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + bytes(4)), "values"),
    "not a number": (lambda path: write_floats(path, [1.0] * 499 + [math.nan]), "finite"),
    "infinite": (lambda path: write_floats(path, [-math.inf] + [1.0] * 499), "finite"),
    "raw, named": (lambda path: write_floats(path, VALUES[1:] + [math.nan]),
                   ".2.f32 has a value at index 499 that is not finite"),
    # What else is wrong with a file of NumPy has test_npy.cpp.
    "NumPy, cut short": (content(numpy_file(VALUES)[:-1]), ".2.f32 is damaged: its header does not fit its 2127 bytes"),
    "NumPy, too few": (content(numpy_file(VALUES[1:])), "values"),
    "NumPy, too large": (content(numpy_file([0.0, -1e39] * 250, "<f8")),
                         ".2.f32 has a value at index 1 that is not finite as float32"),
    "NumPy, not a number": (content(numpy_file([math.nan] + VALUES[1:], "<f8")),
                            ".2.f32 has a value at index 0 that is not finite"),
    "another format": (content(b"text\n"), "is neither a NumPy file (.npy) nor raw little-endian float32"),
}


def test_launcher_of_another_mpi(mpi_program):
    """As srun starts a program whose MPI it does not know: each process is a world of its own."""
    done = run(mpi_program.path, *PLAIN, env={**os.environ, "SLURM_STEP_NUM_TASKS": "4"})
    assert done.returncode != 0
    assert "the launcher has started 4 processes, but MPI has 1 rank in each" in done.stderr


# Every start under MPI takes about a second; what is wrong with an option does not depend on who
# starts the ranks.
@pytest.mark.parametrize("tool, arguments, expected",
                         [("in process", *bad) for bad in BAD_OPTIONS]
                         + [("mpi", *bad) for bad in BAD_OPTIONS[::6]], indirect=["tool"])
def test_refuses_options(tmp_path, tool, arguments, expected):
    tool.refuses(expected, 2, *arguments, "--csv", tmp_path / "rows.csv",
                 "--dump", tmp_path / "dump")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("tool, ranks, kind, rank, iteration", [
    *((*start, kind, 2, 1) for start in starts([3], [3]) for kind in BAD_FILES),
    *((*start, "missing", 0, 0) for start in starts([2], [2])),
], indirect=["tool"])
def test_refuses_file(tmp_path, tool, ranks, kind, rank, iteration):
    _, patterns = write_inputs(tmp_path, heavy_tailed, ranks, 500, 2, 1)
    damage, expected = BAD_FILES[kind]
    damage(tmp_path / f"gradient{iteration}.{rank}.f32")
    out = tmp_path / "out"
    out.mkdir()
    tool.refuses(expected, ranks, "--algorithm", "dense,ok_topk", "--input", patterns, "--k", 9,
                 "--csv", out / "rows.csv", "--dump", out / "dump")
    assert not list(out.iterdir())


@on_two
def test_refuses_bad_places_for_output(tmp_path, tool, ranks):
    file = tmp_path / "file"
    tool.refuses("rows.csv", ranks, *PLAIN, "--csv", tmp_path / "absent" / "rows.csv")
    tool.refuses("folder", ranks, *PLAIN, "--csv", tmp_path)
    file.write_text("kept", encoding="ascii")
    tool.refuses("no folder", ranks, *PLAIN, "--dump", file)
    tool.refuses("file", ranks, *PLAIN, "--dump", file / "below")
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_text(encoding="ascii") == "kept"


def test_a_table_that_cannot_be_written_is_a_failure(program):
    with open("/dev/full", "w", encoding="ascii") as full:
        done = subprocess.run([program.path, "--in-process", "1", *map(str, PLAIN)], stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    assert done.returncode == 1 and "cannot write to the standard output" in done.stderr


def test_refuses_ranks_started_differently(mpi_program):
    # One command for both ranks: mpirun of Open MPI 5.0 does not start two (open-mpi/ompi #13303).
    each = Program(mpi_program.path, [*mpi_program.launcher, 2, "sh", "-c",
                                      'exec "$@" --steps $((2 + ${OMPI_COMM_WORLD_RANK:-$PMI_RANK}))'])
    each.refuses("disagree", "sh", *PLAIN)
    mpi_program.refuses("--in-process", 2, *PLAIN, "--in-process", 2)
