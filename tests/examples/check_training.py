# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with every algorithm on a few images made here; checks what train_fashion_mnist writes."""

import functools
import gzip
import pathlib
import random
import re
import struct

import pytest
from conftest import VERSION, read_rows, run, succeed

RANKS, IMAGES, TESTS, BATCH, EPOCHS = 2, 48, 10, 6, 1
ITERATIONS = EPOCHS * (IMAGES // RANKS // BATCH)
LENGTH = 784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10
DENSITY = 0.01
K = round(DENSITY * LENGTH)
REUSED = "ok_topk(local_select=reused,global_select=reused)"
SPARSE = ["ok_topk", REUSED, "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k"]
SCHEMES = [*SPARSE, "dense", "dense_rabenseifner", "dense_bfloat16", "ring", "ring_chunked", "ring_pipelined",
           "halving_doubling", "recursive_doubling"]
# With other codecs and levels check_bench.py counts words; here training goes on. And the bits a value that are sent.
CODED = [("ring_chunked(codec=block_float,rate=12,codec_level=message)", 12.25),
         ("recursive_doubling(codec=bfloat16)", 16)]
EXACT = ["ok_topk", "topk_a", "topk_dsa", "gtopk"]
COLUMNS = ["iteration", "k", "local_mean", "local_min", "local_max", "global"]


def write_images(folder, prefix, count, rng):
    """Images of which each label has a stripe of its own, in noise: there is something to learn."""
    labels = [i % 10 for i in range(count)]
    images = b"".join(bytes(min(255, rng.randrange(60) + (190 if row // 2 == label else 0))
                            for row in range(28) for _ in range(28)) for label in labels)
    with gzip.open(folder / f"{prefix}-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">iiii", 2051, count, 28, 28) + images)
    with gzip.open(folder / f"{prefix}-labels-idx1-ubyte.gz", "wb") as file:
        file.write(struct.pack(">ii", 2049, count) + bytes(labels))


class Training:
    """The program, with data for it."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        rng = random.Random(1)
        write_images(folder, "train", IMAGES, rng)
        write_images(folder, "t10k", TESTS, rng)

    @functools.cache
    def summary_of(self, algorithm):
        """The rows of the log and the summary of a run, which need not be made again."""
        log, summary = self.folder / "log.csv", self.folder / "summary"
        self.program.succeed(RANKS, "--data", self.folder, "--batch", BATCH, "--epochs", EPOCHS,
                             "--density", DENSITY, "--algorithm", algorithm, "--log", log,
                             "--summary", summary)
        rows = read_rows(log)
        assert list(rows[0]) == COLUMNS
        pairs = summary.read_text(encoding="ascii").split()
        return rows, dict(pair.split("=", 1) for pair in pairs)


@pytest.fixture(scope="module")
def training(mpi_program, tmp_path_factory):
    return Training(mpi_program, tmp_path_factory.mktemp("data"))


def numbers(row):
    return {column: float(row[column]) for column in COLUMNS}


def check_row(scheme, row):
    assert row["k"] == (K if scheme in SPARSE else LENGTH)
    assert row["local_min"] <= row["local_mean"] <= row["local_max"]
    # Two ranks: the mean of all is that of the least and the most.
    assert abs(row["local_mean"] - (row["local_min"] + row["local_max"]) / 2) <= 0.01
    if scheme not in SPARSE:
        assert row["local_min"] == row["local_max"] == row["global"] == LENGTH
    elif scheme in EXACT:
        assert row["local_min"] == row["local_max"] == K
    elif scheme == REUSED:
        assert 2 / 3 * K <= row["local_min"] and row["local_max"] <= K
        assert 2 / 3 * K <= row["global"] <= 1.5 * K
    if scheme in ("ok_topk", "gtopk"):
        assert row["global"] == K
    elif scheme in ("topk_a", "topk_dsa", "gaussian_k"):
        assert row["local_max"] <= row["global"] <= RANKS * row["local_max"]


def check_run(scheme, rows, summary):
    """The rows of the log and the summary are those of the scheme."""
    assert [int(row["iteration"]) for row in rows] == list(range(1, ITERATIONS + 1))
    for row in rows:
        check_row(scheme, numbers(row))
    assert summary["algorithm"] == scheme
    assert int(summary["iterations"]) == ITERATIONS
    entries = K if scheme in SPARSE else LENGTH
    assert float(summary["lower_bound_words"]) == round(2 * entries * (RANKS - 1) / RANKS)
    # On so few entries a re-evaluation of the paper's, a union of all selections, is within the
    # bound or not.
    if scheme != "paper_ok_topk":
        assert float(summary["calls_over_bound"]) == 0
        words = float(summary["words_per_iteration_max"])
        assert 0 < words <= float(summary["bound_words"]) + 0.5


@pytest.mark.parametrize("scheme", SCHEMES)
def test_scheme(training, scheme):
    check_run(scheme, *training.summary_of(scheme))


@pytest.mark.parametrize("scheme, bits", CODED)
def test_codec(training, scheme, bits):
    """A coded run sends its share of the words; the training does not suffer from rounding."""
    _, plain = training.summary_of(scheme.split("(")[0])
    rows, coded = training.summary_of(scheme)
    check_run(scheme, rows, coded)
    share, loss, plain_loss = (
        float(coded["words_per_iteration_mean"]) / float(plain["words_per_iteration_mean"]),
        float(coded["loss"]), float(plain["loss"]))
    assert abs(share - bits / 32) < 0.002
    assert abs(loss - plain_loss) < 0.02 * plain_loss


def test_packed_formats(training):
    """Lossless: the same training in fewer words. Rounded: fewer still, and about the same loss."""
    _, plain = training.summary_of("ok_topk")
    _, packed = training.summary_of("ok_topk(format=packed)")
    assert (packed["loss"], packed["accuracy"]) == (plain["loss"], plain["accuracy"])
    words, loss = float(plain["words_per_iteration_mean"]), float(plain["loss"])
    assert float(packed["words_per_iteration_mean"]) < 0.62 * words
    for values, share in (("bfloat16", 0.4), ("fixed2", 0.32)):
        _, rounded = training.summary_of(f"ok_topk(format=packed, values={values})")
        assert float(rounded["calls_over_bound"]) == 0
        assert float(rounded["words_per_iteration_mean"]) < share * words
        assert float(rounded["loss"]) < 1.05 * loss  # so few iterations may train better with them


@pytest.fixture
def command(training, driver, tmp_path):
    """Runs a command that trains with several schemes; gives what it prints and writes."""
    said = run(training.program.launcher[0], "--version").stdout
    if "Open MPI" not in said and "OpenRTE" not in said:
        pytest.skip("the commands are for Open MPI")

    def trained(name, *options):
        done = driver(name, "--program", training.program.path, "--data", training.folder, "--ranks", RANKS,
                      "--epochs", EPOCHS, "--csv", "all.csv", "--plot", "none", *options, "--", "--batch", BATCH,
                      cwd=tmp_path)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}"
        return done.stdout, read_rows(tmp_path / "all.csv")
    return trained


def test_selection_accuracy(command):
    said, rows = command("selection-accuracy", "--algorithm", "ok_topk,gtopk", "--every", "3")
    assert ([(row["algorithm"], int(row["iteration"])) for row in rows]
            == [(name, i) for name in ("ok_topk", "gtopk") for i in range(1, ITERATIONS + 1, 3)])
    for row in rows:
        check_row(row["algorithm"], numbers(row))
    line = re.search(r"^\| gtopk .*$", said, re.MULTILINE)
    assert [cell.strip() for cell in line[0].split("|")[2:5]] == [f"{ITERATIONS}", "1.000", "0.0 %"]


def test_words(command):
    said, rows = command("training", "--algorithm", "ok_topk, ok_topk(format=packed, values=sign)")
    words = [float(row["words_so_far"]) for row in rows]
    assert len(rows) == 2 * EPOCHS and 0 < words[-1] < 0.4 * words[EPOCHS - 1]
    assert "| ok_topk(format=packed, values=sign) |" in said


def fashion_mnist(folder, count):
    """The first images of Fashion-MNIST, as files of their own."""
    source = pathlib.Path("/usr/share/datasets/fashion-mnist")
    for prefix in ("train", "t10k"):
        for kind, header, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
            name = f"{prefix}-{kind}-ubyte.gz"
            with gzip.open(source / name) as whole, gzip.open(folder / name, "wb", 1) as part:
                start = whole.read(header)
                part.write(start[:4] + struct.pack(">i", count) + start[8:] + whole.read(count * size))


def test_words_of_real_gradients(tmp_path, mpi_program):
    """No rank of 16 sends or receives more than 1.3 times 4k(P-1)/P words in any of the first calls, those that make
    regions included."""
    bench = mpi_program.path.parents[1] / "benchmarks" / "oktopk_bench"
    if not bench.exists():
        pytest.skip("oktopk_bench is not built")
    ranks, calls = 16, range(1, 7)
    fashion_mnist(tmp_path, ranks * BATCH * len(calls))
    mpi_program.succeed(ranks, "--data", tmp_path, "--batch", BATCH, "--epochs", 1, "--density", DENSITY,
                        "--dump", tmp_path, "--dump-at", ",".join(map(str, calls)))
    files = ",".join(f"{tmp_path}/accumulator.{call}.{{rank}}.f32" for call in calls)
    succeed(bench, "--in-process", ranks, "--algorithm", "ok_topk",
            "--input", files, "--k", K, "--no-verify", "--csv", tmp_path / "steps.csv")
    rows = read_rows(tmp_path / "steps.csv")
    assert len(rows) == len(calls)
    for row in rows:
        for words in ("words_sent_max", "words_received_max"):
            assert 2 * K < float(row[words]) <= 1.3 * 4 * K * (ranks - 1) / ranks, row


def test_version(mpi_program):
    said = mpi_program.succeed(RANKS, "--version")
    assert said.startswith(f"train_fashion_mnist {VERSION} (Kokkos ") and said.count("\n") == 1


@pytest.mark.parametrize("arguments, expected", [
    (["--algorithm", "quick"], "there are ok_topk, paper_ok_topk"),
    (["--density", 0], "--density: 0 is not a number over 0 and at most 1"),
    (["--density", 1.5], "--density: 1.5 is not a number over 0 and at most 1"),
    (["--epochs", 0], "--epochs: 0 is no integer of at least 1"),
    (["--lr", "nan"], "--lr: nan is not a finite number over 0"),
    (["--seed", -1], "--seed: -1 is no integer of at least 0"),
    (["--dump-at", 3], "--dump-at requires --dump"),
    (["--colour", "red"], "--colour"),
    (["--log", "absent/log.csv"], "log.csv"),
    (["--log", pathlib.Path(__file__).parent], "is a folder"),
])
def test_refuses(training, tmp_path, arguments, expected):
    training.program.refuses(expected, RANKS, "--data", training.folder, *arguments,
                             "--summary", tmp_path / "summary")
    assert not list(tmp_path.iterdir())
