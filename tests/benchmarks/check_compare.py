#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs benchmarks/compare/run.sh on small input and checks its figures, from outside.

usage: check_compare.py BENCH_EXECUTABLE [--mpirun CMD...]

How near the updates are to the true top k is computed here anew from the dumps of the benchmark and its input.
"""

import argparse
import csv
import math
import pathlib
import re
import subprocess
import sys
import tempfile

import check_bench
from check_bench import Failure, require

COMMAND = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "compare" / "run.sh"
SCHEMES = ["ok_topk", "paper_ok_topk", "dense", "dense_rabenseifner", "dense_bfloat16", "ring_chunked", "topk_a",
           "topk_dsa", "gtopk", "gaussian_k"]
TEXTBOOK = ["ring", "ring_chunked", "ring_pipelined", "halving_doubling", "recursive_doubling"]
COLUMNS = ["algorithm", "ranks", "length", "k", "words_sent", "words_are_a_floor", "lower_bound_ratio", "messages",
           "selection_seconds", "communication_seconds", "seconds", "speedup_over_dense", "output_density", "xi",
           "captured", "captured_by_top_k"]


class Comparison:
    """The command, with the program under test."""

    def __init__(self, bench):
        self.bench = str(pathlib.Path(bench).resolve())

    def run(self, arguments, folder=None):
        command = ["sh", str(COMMAND), "--bench", self.bench, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=check_bench.TIME_LIMIT, check=False,
                              cwd=folder)

    def table(self, folder, arguments, more=()):
        """What it prints, and the rows of the table and of the steps."""
        done = self.run(["--csv", folder / "table.csv", "--rows", folder / "rows.csv", "--plot", "none", *arguments,
                         *(["--", *more] if more else [])])
        require(done.returncode == 0, f"status {done.returncode} of {done.args}\n{done.stdout}{done.stderr}")
        table = read_rows(folder / "table.csv")
        require(list(table[0]) == COLUMNS, f"columns of the table: {list(table[0])}")
        steps = {}
        for row in read_rows(folder / "rows.csv"):
            steps.setdefault(row["algorithm"], []).append(row)
        return done.stdout, {row["algorithm"]: row for row in table}, steps


def read_rows(path):
    with path.open(newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


def near(value, expected, relative=1e-6, absolute=1e-7):
    return math.isclose(float(value), expected, rel_tol=relative, abs_tol=absolute)


def norm(values):
    return math.sqrt(math.fsum(x * x for x in values))


def quality(accumulators, indices, values, k):
    """xi, the share captured and that of the true top k."""
    dense = [math.fsum(column) for column in zip(*accumulators)]
    update = dict(zip(indices, values))
    best = check_bench.top({i: abs(x) for i, x in enumerate(dense)}, k)
    chosen = check_bench.top({i: abs(x) for i, x in update.items()}, k)
    apart = {i: dense[i] for i in best}
    for i in chosen:
        apart[i] = apart.get(i, 0.0) - update[i]
    whole = norm(dense)
    missing = norm([x - update.get(i, 0.0) for i, x in enumerate(dense)])
    missing_best = norm([x for i, x in enumerate(dense) if i not in set(best)])
    return norm(apart.values()) / whole, 1 - (missing / whole) ** 2, 1 - (missing_best / whole) ** 2


def try_figures(compare, kind, ranks, length, density, rate=None):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        accumulators, patterns = check_bench.write_inputs(folder, kind, ranks, length, 2, ranks + length)
        network = ["--rate", rate, "--latency", 1000] if rate else []
        said, table, steps = compare.table(folder, ["--ranks", ranks, "--input", patterns, "--density", density, *network],
                                           ["--dump", folder / "dump"])
        require(list(table) == SCHEMES == list(steps), f"schemes of the table: {list(table)}")
        k = max(1, round(length * density))
        for scheme, row in table.items():
            indices, values, _ = check_bench.read_dump(folder / "dump", scheme, 0)
            last = steps[scheme][-1]
            expected = quality(accumulators, indices, values, k)
            got = [float(last[column]) for column in ("xi", "captured", "captured_by_top_k")]
            require(all(map(near, got, expected)), f"{scheme}: xi and shares are {got} instead of {expected}")
            require(near(last["output_density"], len(indices) / length), f"{scheme}: density {last['output_density']}")
            check_row(row, steps[scheme], ranks, length, k)
            if rate:
                wire = [max(float(step["words_sent_max"]), float(step["words_received_max"])) * 32 / 1000 +
                        int(step["messages_sent_max"]) * 1e-3 for step in steps[scheme]]
                mean = math.fsum(wire) / len(wire)
                over = float(row["seconds"]) - mean
                require(0 <= over < 0.01 * mean, f"{scheme}: {row['seconds']} s, but the wire takes {mean} s")
        check_marks(said, table)


def check_row(row, steps, ranks, length, k):
    """The row of the table sums up the steps."""
    what = f"in {row}"
    require((int(row["ranks"]), int(row["length"]), int(row["k"])) == (ranks, length, k), f"ranks, length or k {what}")
    words = max(float(step["words_sent_max"]) for step in steps)
    require(float(row["words_sent"]) == words, f"words {what}")
    require(near(row["lower_bound_ratio"], words / (2 * k * (ranks - 1) / ranks), 1e-4), f"ratio {what}")
    require(int(row["messages"]) == max(int(step["messages_sent_max"]) for step in steps), f"messages {what}")
    for column in ("output_density", "xi", "captured"):
        require(near(row[column], math.fsum(float(step[column]) for step in steps) / len(steps)), f"{column} {what}")
    parts = float(row["selection_seconds"]) + float(row["communication_seconds"])
    require(near(parts, float(row["seconds"])) and float(row["seconds"]) > 0, f"times {what}")
    require((row["words_are_a_floor"] == "1") == (row["algorithm"] == "dense"), f"floor {what}")


def check_marks(said, table):
    """Every scheme that is slower than dense is marked, and no other; and only words that are not counted are."""
    for scheme, row in table.items():
        line = re.search(rf"^\| {scheme} .*$", said, re.MULTILINE)
        require(line is not None, f"no line of {scheme} in\n{said}")
        slower = scheme != "dense" and float(row["speedup_over_dense"]) < 0.995 # 0.99 x and less, as printed
        require(("SLOWER" in line[0]) == slower, f"{line[0]} but {row}")
        require(("*" in line[0]) == (scheme == "dense"), f"mark of the floor in {line[0]}")
        expected = float(table["dense"]["seconds"]) / float(row["seconds"])
        require(near(row["speedup_over_dense"], expected, 1e-4), f"speed-up of {scheme}")


def try_loser(compare):
    """Where everything is selected, pairs of index and value are twice the words of dense, and show it."""
    with tempfile.TemporaryDirectory() as name:
        said, table, _ = compare.table(pathlib.Path(name), ["--ranks", 2, "--length", 2000, "--density", 1, "--rate", "1kbit",
                                                            "--algorithms", "dense,topk_a", "--steps", 2])
        require(near(table["topk_a"]["speedup_over_dense"], 0.5, 0.01), f"speed-up of topk_a: {table['topk_a']}")
        require("SLOWER" in said and "1 of 1 schemes are SLOWER" in said, f"topk_a does not lose in\n{said}")
        require(near(table["topk_a"]["xi"], 0) and near(table["topk_a"]["captured"], 1), "something is lost")


def try_all(compare):
    with tempfile.TemporaryDirectory() as name:
        _, table, _ = compare.table(pathlib.Path(name), ["--ranks", 2, "--length", 1000, "--steps", 1,
                                                         "--algorithms", "all"])
        require(sorted(table) == sorted({*SCHEMES, *TEXTBOOK}), f"schemes of the table: {list(table)}")


def try_codecs(compare, arguments, more, expected):
    """`expected`: the schemes, and the bits a value that each sends."""
    ranks, length = 3, 200_000
    with tempfile.TemporaryDirectory() as name:
        said, table, steps = compare.table(pathlib.Path(name), ["--ranks", ranks, "--length", length, "--steps", 2,
                                                                *arguments], more)
        require(list(table) == list(expected) == list(steps), f"schemes of the table: {list(table)}")
        for scheme, bits in expected.items():
            row = table[scheme]
            check_row(row, steps[scheme], ranks, length, length // 100)
            share = float(row["words_sent"]) / (2 * length * (ranks - 1) / ranks)
            require(abs(share - bits / 32) < 0.005, f"{scheme} sends {share} of the words, not {bits} bits a value")
            lossless = bits == 32
            require((float(row["xi"]) < 1e-6) == lossless, f"xi of {scheme}: {row['xi']}")
            require(float(row["captured"]) > 0.999, f"{scheme} captures {row['captured']}")
        check_marks(said, table)
        require(len({len(line) for line in said.splitlines() if line.startswith("|")}) == 1, f"crooked table:\n{said}")


def try_mpi(compare, mpirun):
    with tempfile.TemporaryDirectory() as name:
        launch = " ".join(check_bench.Tool(compare.bench, mpirun).launch(2))
        _, table, steps = compare.table(pathlib.Path(name), ["--launcher", launch, "--length", 3000, "--steps", 2])
        require(list(table) == SCHEMES, f"schemes of the table: {list(table)}")
        for scheme, row in table.items():
            check_row(row, steps[scheme], 2, 3000, 30)


def try_picture(compare):
    with tempfile.TemporaryDirectory() as name:
        done = compare.run(["--ranks", 2, "--length", 3000, "--steps", 1, "--csv", "table.csv", "--plot", "table.png"], name)
        require(done.returncode == 0, done.stderr)
        made = sorted(each.name for each in pathlib.Path(name).iterdir())
        require(made == ["table.csv", "table.png"], f"made {made}")
        require((pathlib.Path(name) / "table.png").read_bytes().startswith(b"\x89PNG"), "the picture is no PNG")


def has_matplotlib():
    return any(subprocess.run([python, "-c", "import matplotlib"], capture_output=True, check=False).returncode == 0
               for python in ("python3", "/usr/bin/python3"))


BAD = [
    (["--colour", "red"], "--colour"),
    (["--ranks"], "--ranks needs a value"),
    (["--csv"], "--csv needs a value"),
    (["--ranks", "0"], "--ranks"),
    (["--ranks", "two"], "--ranks"),
    (["--length", "-5"], "--length"),
    (["--length", "10", "--input", "x.{rank}"], "--length and --input"),
    (["--input", "absent.{rank}"], "there is no input file"),
    (["--density", "2"], "--density"),
    (["--algorithms", "dense,quick"], "quick"),
    (["--algorithms", "dense,ring", "--codecs", "bfloat16"], "--codecs is for ring_chunked and recursive_doubling"),
    (["--length", "1000", "--codecs", "gzip"], "gzip"),
    (["--length", "1000", "--codecs", "block_float:17"], "--rate must be from 4 to 16"),
    (["--length", "1000", "--codecs", "block_float:"], "--rate"),
    (["--length", "1000", "--codecs", "block_float,block_float:8"], "twice"),
    (["--steps", "0"], "--steps"),
    (["--rate", "fast"], "--rate"),
    (["--rate", "0gbit"], "--rate"),
    (["--latency", "5"], "--rate"),
    (["--rate", "1gbit", "--latency", "little"], "--latency"),
    (["--rate", "1gbit", "--mpi"], "--rate"),
    (["--launcher", "mpirun -n 2", "--ranks", "3"], "--launcher"),
    (["--rows", "absent/rows.csv"], "cannot write"),
    (["--length", "1000", "--codecs", "bfloat16", "--", "--codec", "identity"], "--codec"),
    (["--", "--k", "3"], "--density and --k"),
]


def try_bad(compare, arguments, expected):
    with tempfile.TemporaryDirectory() as name:
        done = compare.run(["--csv", "table.csv", "--plot", "none", *arguments], name)
        require(done.returncode != 0, f"status 0 of {arguments}")
        require("shift" not in done.stderr, f"{arguments} made it say: {done.stderr}")
        require(expected in done.stderr, f"no \"{expected}\" in what {arguments} made it say: {done.stderr}")
        require(not list(pathlib.Path(name).iterdir()), f"left behind: {list(pathlib.Path(name).iterdir())}")


def try_foreign_file(compare):
    """A file of NumPy would give a perfect result: its header reads as the few largest values, the same on all ranks."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for rank in range(2):
            (folder / f"gradient.{rank}.npy").write_bytes(check_bench.numpy_file([0.5, rank] * 100))
        done = compare.run(["--ranks", "2", "--input", "gradient.{rank}.npy", "--csv", "table.csv", "--plot", "none"], name)
        require(done.returncode != 0, "status 0 of a NumPy file")
        require("is a NumPy file (.npy)" in done.stderr, f"a NumPy file made it say: {done.stderr}")
        require(not (folder / "table.csv").exists(), "a table was written")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("executable")
    parser.add_argument("--mpirun", nargs=argparse.REMAINDER, help="launcher and its options")
    given = parser.parse_args()
    compare = Comparison(given.executable)
    checks = [
        ("figures, heavy-tailed, P = 4", lambda: try_figures(compare, check_bench.heavy_tailed, 4, 3001, 0.02)),
        ("figures, ties, P = 3", lambda: try_figures(compare, check_bench.full_of_ties, 3, 1500, 0.05)),
        ("figures on a slow network, P = 2",
         lambda: try_figures(compare, check_bench.crowded, 2, 2000, 0.01, "1kbit")),
        ("all schemes", lambda: try_all(compare)),
        ("codecs", lambda: try_codecs(compare, ["--algorithms", "dense,ring_chunked",
                                                "--codecs", "bfloat16,block_float,block_float:12"], [],
                                      {"dense": 32, "ring_chunked": 32, "ring_chunked_bfloat16": 16,
                                       "ring_chunked_block_float8": 8.25, "ring_chunked_block_float12": 12.25})),
        ("a codec for the benchmark", lambda: try_codecs(compare, ["--algorithms", "dense,ring_chunked"],
                                                         ["--codec", "block_float", "--rate", 8],
                                                         {"dense": 32, "ring_chunked_block_float8": 8.25})),
        ("a scheme that loses", lambda: try_loser(compare)),
    ]
    if given.mpirun:
        checks.append(("MPI", lambda: try_mpi(compare, given.mpirun)))
    if has_matplotlib():
        checks.append(("picture", lambda: try_picture(compare)))
    checks.append(("refuses files of NumPy", lambda: try_foreign_file(compare)))
    checks += [(f"refuses {' '.join(bad)}", lambda b=bad, e=expected: try_bad(compare, b, e)) for bad, expected in BAD]
    return check_bench.report(checks)


if __name__ == "__main__":
    sys.exit(main())
