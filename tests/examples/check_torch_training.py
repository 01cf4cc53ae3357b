# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains small networks of train_torch on images and a text made here, on two ranks; checks what it writes and refuses."""

import functools
import random
import time

import pytest
from check_training import write_images
from conftest import read_rows

RANKS, STEPS = 2, 6
COLUMNS = ["algorithm", "ranks", "workload", "parameters", "batch", "density", "iteration", "epoch", "seconds",
           "compute_seconds", "wait_seconds", "communication_seconds", "hidden_seconds", "hideable_seconds", "words",
           "local_selected", "selected", "loss", "test_loss", "accuracy", "xi", "tested"]
WORKLOADS = ["vgg16", "lstm", "bert"]
ONE_BUCKET = ("--bucket-mib", 1000)


def write_text(file, words):
    """Sentences of few words, some of which always follow each other: there is something to learn."""
    draw = random.Random(3)
    verbs, things = ["sees", "takes", "finds"], [f"thing{chr(97 + i)}" for i in range(20)]
    sentences = (f"The {draw.choice(things)} {draw.choice(verbs)} the {draw.choice(things)}."
                 for _ in range(words // 6 + 1))
    file.write_text("\n".join(sentences), encoding="ascii")


class Training:
    """The program, with data for it."""

    def __init__(self, program, folder):
        self.program = program
        self.folder = folder
        write_images(folder, "train", 64, random.Random(1))
        write_images(folder, "t10k", 16, random.Random(2))
        write_text(folder / "text", 60_000)

    def options(self, workload, *more, size=0.02):
        return ["--workload", workload, "--images", self.folder, "--text", self.folder / "text", "--size", size,
                "--batch", 4, *more]

    @functools.cache
    def rows(self, workload, algorithm, *more, steps=STEPS, size=0.02):
        """The three rows of a run, which need not be made again."""
        table = self.folder / "table.csv"
        self.program.succeed(RANKS, *self.options(workload, "--algorithm", algorithm, "--csv", table, "--every",
                                                  steps // 3, "--iterations", steps, *more, size=size))
        rows = read_rows(table)
        assert list(rows[0]) == COLUMNS
        assert [int(row["iteration"]) for row in rows] == [steps // 3, steps // 3 * 2, steps]
        return rows


@pytest.fixture(scope="module")
def training(mpi_program, tmp_path_factory):
    return Training(mpi_program, tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize("workload", WORKLOADS)
def test_rows_say_what_was_done(training, workload):
    for row in training.rows(workload, "ok_topk", "--density", 0.02, "--xi"):
        parameters = int(row["parameters"])
        assert row["algorithm"] == "ok_topk" and row["workload"] == workload and int(row["ranks"]) == RANKS
        assert float(row["density"]) == 0.02 and int(row["batch"]) == 4
        assert float(row["selected"]) == pytest.approx(0.02 * parameters, abs=1)
        assert float(row["local_selected"]) == pytest.approx(0.02 * parameters, abs=1)
        assert 0 < float(row["words"]) < int(row["iteration"]) * (6 * 0.02 * parameters + 2000)
        assert 0 <= float(row["accuracy"]) <= 1 and float(row["test_loss"]) > 0
        assert 0 < float(row["xi"]) < 2
        assert workload != "vgg16" or int(row["tested"]) == 16  # all that there are
        assert float(row["hidden_seconds"]) == 0  # all is one vector, reduced after the backward pass
        parts = float(row["compute_seconds"]) + float(row["wait_seconds"])
        assert parts == pytest.approx(float(row["seconds"]), rel=0.01)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_dense_learns(training, workload):
    steps, size = (60, 0.1) if workload == "vgg16" else (12, 0.02)  # so many layers learn slowly
    rows = training.rows(workload, "dense", "--learning-rate", 0.01 if workload == "vgg16" else 0.1, steps=steps, size=size)
    assert float(rows[-1]["loss"]) < float(rows[0]["loss"])
    assert float(rows[-1]["words"]) == pytest.approx(steps * int(rows[0]["parameters"]), rel=0.01)


def test_fewer_words_make_a_smaller_network(training):
    usual, small = (training.rows("bert", "ok_topk", "--density", 0.02, *more) for more in ((), ("--words", 12)))
    assert int(small[0]["parameters"]) < int(usual[0]["parameters"])


@pytest.mark.parametrize("algorithm", ["ok_topk", "dense"])
def test_overlap_changes_times_and_nothing_else(training, algorithm):
    plain, overlapped = (training.rows("bert", algorithm + mark, *ONE_BUCKET) for mark in ("", "+overlap"))
    for column in ("words", "selected", "loss", "test_loss", "accuracy"):
        assert [row[column] for row in plain] == [row[column] for row in overlapped]


def test_several_buckets_give_the_sums_of_one(training):
    one, many = (training.rows("lstm", "dense+overlap", "--clip-norm", 0, "--bucket-mib", size) for size in (1000, 0.01))
    assert float(many[-1]["test_loss"]) == pytest.approx(float(one[-1]["test_loss"]), rel=1e-3)
    assert float(many[-1]["hideable_seconds"]) > 0


@pytest.mark.parametrize("more", [(), ("--every", 1, "--xi")])
def test_minutes_are_those_of_the_run_in_all(training, tmp_path, more):
    write_images(tmp_path, "train", 64, random.Random(1))
    write_images(tmp_path, "t10k", 2000, random.Random(2))
    minutes, table = 0.15, tmp_path / "table.csv"
    began = time.monotonic()
    training.program.succeed(RANKS, "--workload", "vgg16", "--images", tmp_path, "--size", 0.05, "--batch", 4,
                             "--minutes", minutes, "--algorithm", "ok_topk", "--density", 0.05, "--csv", table, *more)
    wall = time.monotonic() - began
    rows = read_rows(table)
    # Beside the run there are the launcher and the libraries, which a busy machine takes long to load.
    assert 0.7 * 60 * minutes < wall < 60 * minutes + 8
    assert float(rows[-1]["seconds"]) > 0.5 * 60 * minutes  # of training
    assert len(rows) > 2
    tested = [int(row["tested"]) for row in rows]
    assert len(set(tested[:-1])) == 1 and 0 < tested[0] <= tested[-1] <= 2000
    assert tested[0] % 2 == 0  # as many on each rank
    if more:
        assert tested[0] < 2000
        assert all(0 < float(row["xi"]) for row in rows)


@pytest.mark.parametrize("sentence, options", [
    ("not in {vgg16,lstm,bert}", ["--workload", "resnet"]),
    ('there is no algorithm "okk_topk"; there are ok_topk, ', ["--algorithm", "okk_topk"]),
    ("has format, local, ", ["--algorithm", "ok_topk(select=exact)"]),
    ("give --iterations or --minutes, not both", ["--minutes", 1]),
    ("cannot read the text", ["--workload", "lstm", "--text", "/nowhere/text"]),
    ("words; training needs 10,000 or more", ["--workload", "bert", "--text", "short"]),
    ("--density", ["--density", 2]),
])
def test_what_is_wrong_is_said_once(training, sentence, options):
    short = training.folder / "short"
    write_text(short, 500)
    options = [short if each == "short" else each for each in options]
    first = training.options("vgg16", "--iterations", 2)
    given = [each for each in options if str(each).startswith("--")]
    kept = [each for pair in zip(first[::2], first[1::2]) if pair[0] not in given for each in pair]
    training.program.refuses(sentence, RANKS, *kept, *options)
