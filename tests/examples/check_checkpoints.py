# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Kills train_fashion_mnist in the middle of its saves, goes on, and compares the bits; damages its checkpoints."""

import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import time
import uuid

import pytest
from check_training import write_images
from conftest import SECONDS, read_rows

RANKS, IMAGES, TESTS, BATCH, EPOCHS = 2, 48, 10, 6, 2
ITERATIONS = EPOCHS * (IMAGES // RANKS // BATCH)
HEADER = struct.Struct("=8sQQQ")  # of a checkpoint of the library: what it is, byte order, size, checksum


class Training:
    """One folder with checkpoints of the program."""

    def __init__(self, program, data, folder):
        self.program, self.data, self.folder = program, data, folder
        self.file = folder / "run.checkpoint"

    def arguments(self, *more):
        return ["--data", self.data, "--batch", BATCH, "--epochs", EPOCHS, "--density", 0.01,
                "--algorithm", "ok_topk(local_select=reused, global_select=reused, tau=4)",
                "--checkpoint", self.file, "--every", 1, "--csv", self.folder / "csv",
                "--log", self.folder / "log", *more]

    def finish(self):
        return self.program.succeed(RANKS, *self.arguments())

    def of_rank(self, rank, iteration=ITERATIONS):
        return self.folder / f"run.checkpoint.{iteration}.{rank}"

    def results(self):
        """What must be the same to the bit, interrupted or not: all but times."""
        numbers = []
        for rank in range(RANKS):
            content = self.of_rank(rank).read_bytes()
            numbers.append(content[:HEADER.size + HEADER.unpack_from(content)[2]])
            assert len(numbers[-1]) > 4 * 1_800_000  # the weights are in it
        rows = [{key: value for key, value in row.items() if not key.endswith("_seconds")}
                for row in read_rows(self.folder / "csv")]
        assert len(rows) == EPOCHS
        return numbers, rows, (self.folder / "log").read_text(encoding="ascii")

    def files(self):
        return sorted(file.name for file in self.folder.iterdir())

    def kill_when(self, moment, victims):
        """Starts the program, and kills ranks when `moment(folder)` is so; whether any was still there."""
        mark = uuid.uuid4().hex
        command = list(map(str, [*self.program.start(RANKS), *self.arguments()]))
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              env={**os.environ, "OKTOPK_CHECK": mark}) as process:
            try:
                end = time.monotonic() + SECONDS
                while process.poll() is None and not moment(self.folder):
                    assert time.monotonic() < end
                    time.sleep(0.0002)
                found = ranks_with(mark, self.program.path)
                for rank in found[:victims]:
                    os.kill(rank, signal.SIGKILL)
                process.wait(SECONDS)
            finally:
                process.kill()
        deadline = time.monotonic() + SECONDS
        while ranks_with(mark, self.program.path):
            assert time.monotonic() < deadline, "a rank lives on"
            time.sleep(0.05)
        return process.returncode != 0


def ranks_with(mark, program):
    """Processes of the program that were started with this mark."""
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").resolve() == program and mark.encode() in (process / "environ").read_bytes():
                found.append(int(process.name))
        except OSError:  # it has ended
            continue
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_images(folder, "train", IMAGES, random.Random(1))
    write_images(folder, "t10k", TESTS, random.Random(2))
    return folder


@pytest.fixture(scope="module")
def straight(mpi_program, data, tmp_path_factory):
    """A training that nobody has interrupted."""
    training = Training(mpi_program, data, tmp_path_factory.mktemp("straight"))
    training.finish()
    assert training.files() == ["csv", "log", "run.checkpoint", training.of_rank(0).name,
                                training.of_rank(1).name]
    return training


def names(folder):
    return [file.name for file in folder.iterdir()]


# The moments all come after a first checkpoint, to which a training can go back.
def writes_a_rank(folder):
    return "run.checkpoint" in names(folder) and any(
        name.endswith((".0.part", ".1.part")) and ".checkpoint.0." not in name for name in names(folder))


def ranks_differ(folder):
    """One rank has saved an iteration that the other has not."""
    whole = [name.rsplit(".", 2)[1:] for name in names(folder)
             if name.startswith("run.checkpoint.") and not name.endswith(".part")]
    saved = [{int(iteration) for iteration, rank in whole if rank == str(own)} for own in range(RANKS)]
    return "run.checkpoint" in names(folder) and saved[0] != saved[1] and max(map(len, saved)) > 1


def writes_the_last(folder):
    return {"run.checkpoint", "run.checkpoint.part"} <= set(names(folder))


def has_saved_five(folder):
    return any(name.startswith("run.checkpoint.5.") for name in names(folder))


@pytest.mark.parametrize("moment, victims", [(writes_a_rank, 1), (writes_a_rank, RANKS), (ranks_differ, RANKS),
                                             (writes_the_last, RANKS), (has_saved_five, 1), (None, 1), (None, RANKS)])
def test_goes_on_to_the_bit(straight, tmp_path, moment, victims):
    """Killed twice at a moment, or at times at random."""
    training = Training(straight.program, straight.data, tmp_path)
    kills = 0
    for until in (time.monotonic() + random.Random(17 + i).uniform(0.5, 1.6) * (1 + i) for i in range(2)):
        kills += training.kill_when(moment or (lambda _, end=until: time.monotonic() > end), victims)
    assert kills > 0 or moment is None
    assert "goes on after iteration" in training.finish() or moment is None
    assert training.files() == straight.files()  # nothing is left of what was not complete
    assert training.results() == straight.results()


@pytest.fixture
def copied(straight, tmp_path):
    """A finished training to damage."""
    for file in straight.folder.iterdir():
        shutil.copy(file, tmp_path)
    return Training(straight.program, straight.data, tmp_path)


def test_a_finished_training_stays_as_it_is(copied, straight):
    summary = copied.folder / "summary"
    said = copied.program.succeed(RANKS, *copied.arguments("--summary", summary))
    assert f"goes on after iteration {ITERATIONS} of {ITERATIONS}" in said
    assert copied.results() == straight.results()
    parts = sum(float(value) for row in read_rows(copied.folder / "csv") for key, value in row.items()
                if key.endswith("_seconds"))
    in_all = float(re.search("total_seconds=([0-9.]+)", summary.read_text(encoding="ascii"))[1])
    assert in_all + 0.01 >= parts > 0.02  # the runs before are counted


def test_removes_what_is_left_and_nothing_else(copied):
    left = ["run.checkpoint.part", "run.checkpoint.13.0", "run.checkpoint.13.1.part", "run.checkpoint.7.1"]
    others = ["run.checkpoint.old", "run.checkpoint.x.0", "run.checkpoint.13.2", "another.checkpoint.1.0"]
    for name in left + others:
        (copied.folder / name).write_text("something", encoding="ascii")
    before = set(copied.files())
    copied.finish()
    assert set(copied.files()) == before - set(left)


def cut(file):
    file.write_bytes(file.read_bytes()[:-5])


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)


def put(content):
    return lambda file: file.write_bytes(content)


def take_from_other(file):
    shutil.copy(f"{str(file)[:-1]}0", file)


TEXT = b"a letter to nobody, longer than the header of a checkpoint"
OWN, OTHER = f".{ITERATIONS}.0", f".{ITERATIONS}.1"


@pytest.mark.parametrize("which, damage, said", [
    ("", cut, ""), ("", flip, ""), ("", put(TEXT), ""), (OWN, flip, ""), (OTHER, cut, ""),
    (OTHER, put(b""), ""), (OTHER, put(TEXT), ""), (OTHER, pathlib.Path.unlink, "cannot be read"),
    (OTHER, take_from_other, "is not the one")])
def test_refuses_damage(copied, which, damage, said):
    file = pathlib.Path(f"{copied.file}{which}")
    damage(file)
    before = {name: (copied.folder / name).read_bytes() for name in copied.files()}
    copied.program.refuses(f"{file} {said}", RANKS, *copied.arguments())
    assert before == {name: (copied.folder / name).read_bytes() for name in copied.files()}


@pytest.mark.parametrize("ranks, more", [(RANKS, ["--seed", 2]), (RANKS, ["--lr", 0.1]), (1, [])])
def test_refuses_another_training(copied, ranks, more):
    copied.program.refuses(f"{copied.file} is of another training", ranks, *copied.arguments(*more))


@pytest.mark.parametrize("arguments, expected", [
    (["--every", 3], "--every requires --checkpoint"),
    (["--every", 0, "--checkpoint", "x"], "--every: 0 is no integer of at least 1"),
    (["--checkpoint", "absent/run"], "absent/run"),
])
def test_refuses_options(straight, tmp_path, arguments, expected):
    straight.program.refuses(expected, RANKS, "--data", straight.data, *arguments)
    assert not list(tmp_path.iterdir())
