#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with every algorithm on a few images made here, and checks what train_fashion_mnist writes, from outside.

usage: check_training.py PROGRAM --mpirun CMD...
"""

import argparse
import csv
import gzip
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "benchmarks"))
from check_bench import TIME_LIMIT, Tool, report, require

RANKS, IMAGES, TESTS, BATCH, EPOCHS = 2, 48, 10, 6, 1
ITERATIONS = EPOCHS * (IMAGES // RANKS // BATCH)
LENGTH = 784 * 1024 + 1024 + 1024 * 1024 + 1024 + 1024 * 10 + 10
DENSITY = 0.01
K = round(DENSITY * LENGTH)
REUSED = "ok_topk(local_select=reused,global_select=reused)"
SCHEMES = ["ok_topk", REUSED, "paper_ok_topk", "dense", "dense_rabenseifner", "dense_bfloat16", "topk_a",
           "topk_dsa", "gtopk", "gaussian_k", "ring", "ring_chunked", "ring_pipelined", "halving_doubling", "recursive_doubling"]
SPARSE = ["ok_topk", REUSED, "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k"]
# Every codec, both levels, both algorithms; and the bits a value that are sent.
CODED = [
    ("ring_chunked(codec=block_float)", 8.25),
    ("ring_chunked(codec=block_float,rate=12,codec_level=message)", 12.25),
    ("ring_chunked(codec=identity)", 32),
    ("recursive_doubling(codec=bfloat16)", 16),
    ("recursive_doubling(codec=zfp,rate=10)", 10),
]
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

    def __init__(self, program, mpirun, data):
        self.tool = Tool(program, mpirun)
        self.data = data
        self.summaries = {}

    def summary_of(self, scheme):
        """What a run without options left behind, which need not be one more."""
        if scheme not in self.summaries:
            self.summaries[scheme] = try_log(self, scheme)
        return self.summaries[scheme]

    def run(self, arguments):
        command = self.tool.command(RANKS, ["--data", str(self.data), "--batch", str(BATCH), "--epochs", str(EPOCHS),
                                            "--density", str(DENSITY), *map(str, arguments)])
        return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)


def try_log(training, scheme):
    """A run and its files; gives the summary."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done = training.run(["--algorithm", scheme, "--log", folder / "log.csv",
                             "--summary", folder / "summary"])
        require(done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}")
        with (folder / "log.csv").open(newline="", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        require(list(rows[0]) == COLUMNS, f"columns {list(rows[0])}")
        require([int(row["iteration"]) for row in rows] == list(range(1, ITERATIONS + 1)), f"iterations of {rows}")
        for row in rows:
            check_row(scheme, {column: float(row[column]) for column in COLUMNS})
        summary = dict(pair.split("=", 1) for pair in (folder / "summary").read_text(encoding="ascii").split())
        require(summary.pop("algorithm") == scheme, f"summary of another algorithm than {scheme}")
        summary = {key: float(value) for key, value in summary.items()}
        check_summary(scheme, summary)
        return summary


def try_codec(training, name, bits):
    """A coded run sends its share of the words, and the training does not suffer from what is rounded off."""
    plain, coded = training.summary_of(name.split("(")[0]), try_log(training, name)
    share = coded["words_per_iteration_mean"] / plain["words_per_iteration_mean"]
    require(abs(share - bits / 32) < 0.002, f"{name} sends {share} of the words, not {bits} bits a value")
    require(abs(coded["loss"] - plain["loss"]) < 0.02 * plain["loss"], f"losses {coded['loss']} and {plain['loss']}")


def has_zfp(training):
    return ", zfp" in training.run(["--list"]).stdout


def check_row(scheme, row):
    what = f"in {row}"
    require(row["k"] == (K if scheme in SPARSE else LENGTH), f"k {what}")
    require(row["local_min"] <= row["local_mean"] <= row["local_max"], f"order {what}")
    # Two ranks: the mean of all is that of the least and the most.
    require(abs(row["local_mean"] - (row["local_min"] + row["local_max"]) / 2) <= 0.01, f"mean {what}")
    if scheme not in SPARSE:
        require(row["local_min"] == row["local_max"] == row["global"] == LENGTH, f"dense leaves something out {what}")
    elif scheme in EXACT:
        require(row["local_min"] == row["local_max"] == K, f"the selection is not exact {what}")
    elif scheme == REUSED:
        require(2 / 3 * K <= row["local_min"] and row["local_max"] <= K, f"the selection leaves its band {what}")
        require(2 / 3 * K <= row["global"] <= 1.5 * K, f"the result leaves its band {what}")
    if scheme in ("ok_topk", "gtopk"):
        require(row["global"] == K, f"{scheme} gives another number than k {what}")
    elif scheme in ("topk_a", "topk_dsa", "gaussian_k"):
        require(row["local_max"] <= row["global"] <= RANKS * row["local_max"], f"no union of selections {what}")


def check_summary(scheme, summary):
    require(summary["iterations"] == ITERATIONS, f"iterations in {summary}")
    entries = K if scheme in SPARSE else LENGTH
    require(summary["lower_bound_words"] == round(2 * entries * (RANKS - 1) / RANKS), f"lower bound in {summary}")
    # On so few entries a re-evaluation of the paper's, a union of all selections, is within the bound or not.
    if scheme != "paper_ok_topk":
        require(summary["calls_over_bound"] == 0, f"more words than the bound in {summary}")
        require(0 < summary["words_per_iteration_max"] <= summary["bound_words"] + 0.5, f"words in {summary}")


def try_selection_accuracy(training):
    """The command that trains with several schemes and puts their logs together."""
    command = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "selection_accuracy" / "run.sh"
    with tempfile.TemporaryDirectory() as name:
        done = subprocess.run(["sh", str(command), "--program", str(pathlib.Path(training.tool.executable).resolve()),
                               "--data", str(training.data), "--ranks", str(RANKS), "--epochs", str(EPOCHS),
                               "--algorithms", "ok_topk,gtopk", "--every", "3", "--csv", "all.csv", "--plot", "none",
                               "--", "--batch", str(BATCH)],
                              cwd=name, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        require(done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}")
        with (pathlib.Path(name) / "all.csv").open(newline="", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
    got = [(row["algorithm"], int(row["iteration"])) for row in rows]
    require(got == [(name, i) for name in ("ok_topk", "gtopk") for i in range(1, ITERATIONS + 1, 3)], f"rows {got}")
    for row in rows:
        check_row(row["algorithm"], {column: float(row[column]) for column in COLUMNS})
    line = re.search(r"^\| gtopk .*$", done.stdout, re.MULTILINE)
    require(line is not None and [f"{ITERATIONS}", "1.000", "0.0 %"] == [x.strip() for x in line[0].split("|")[2:5]],
            f"what gtopk selects is not exactly k in\n{done.stdout}")


BAD = [
    (["--algorithm", "quick"], "there are ok_topk, paper_ok_topk"),
    (["--algorithm", "ok_topk(codec=bfloat16)"], "no option \"codec\""),
    (["--algorithm", "ring_chunked(codec=gzip)"], "none, identity, bfloat16, block_float"),
    (["--algorithm", "ring_chunked(codec=block_float, rate=3)"], "between 4 and 16"),
    (["--algorithm", "ring_chunked(codec=zfp, codec_level=message)"], "zfp"), # loses again, or is not there
    (["--density", 0], "--density"),
    (["--epochs", 0], "--epochs"),
    (["--lr", "nan"], "learning rate is not finite"),
    (["--seed", -1], "--seed"),
    (["--dump-at", 3], "--dump"),
    (["--colour", "red"], "--colour"),
]


def is_open_mpi(mpirun):
    said = subprocess.run([mpirun[0], "--version"], capture_output=True, text=True, check=False).stdout
    return "Open MPI" in said or "OpenRTE" in said


def try_bad(training, arguments, expected):
    with tempfile.TemporaryDirectory() as name:
        done = training.run([*arguments, "--summary", pathlib.Path(name) / "summary"])
        require(done.returncode != 0, "status 0")
        said = [line for line in done.stderr.splitlines() if line.startswith("train_fashion_mnist: ")]
        require(len(said) == 1 and expected in said[0], f"no \"{expected}\" in\n{done.stderr}")
        require(not list(pathlib.Path(name).iterdir()), "something was left behind")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--mpirun", nargs=argparse.REMAINDER, help="launcher and its options", required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        rng = random.Random(1)
        write_images(pathlib.Path(name), "train", IMAGES, rng)
        write_images(pathlib.Path(name), "t10k", TESTS, rng)
        training = Training(given.program, given.mpirun, name)
        checks = [(f"log of {scheme}", lambda s=scheme: training.summary_of(s)) for scheme in SCHEMES]
        checks += [(label, lambda n=label, b=bits: try_codec(training, n, b))
                   for label, bits in CODED if "zfp" not in label or has_zfp(training)]
        checks += [(f"refuses {' '.join(map(str, bad))}", lambda b=bad, e=expected: try_bad(training, b, e))
                   for bad, expected in BAD]
        checks += [
            ("refuses a log in no folder", lambda: try_bad(training, ["--log", f"{name}/absent/log.csv"], "log.csv")),
            ("refuses a log that is a folder", lambda: try_bad(training, ["--log", name], "is a folder")),
        ]
        if is_open_mpi(given.mpirun): # which the command is for
            checks.append(("selection accuracy", lambda: try_selection_accuracy(training)))
        return report(checks)


if __name__ == "__main__":
    sys.exit(main())
