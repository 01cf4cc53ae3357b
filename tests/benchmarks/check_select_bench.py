#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs select_bench as a user would and checks what it writes, from outside.

usage: check_select_bench.py SELECT_BENCH_EXECUTABLE [--mpirun CMD...]
"""

import argparse
import csv
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

COLUMNS = ["selector", "length", "density", "input", "seconds", "read_ratio", "rrw_ratio", "selected"]
EXACT = ["kth", "kth_by_histograms", "refine"]
TIME_LIMIT = 60


class Failure(Exception):
    """A check that does not hold."""


def require(condition, what):
    if not condition:
        raise Failure(what)


class Program:
    """The program under test."""

    def __init__(self, path):
        self.path = str(pathlib.Path(path).resolve())

    def run(self, *arguments):
        return subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, timeout=TIME_LIMIT,
                              check=False)

    def rows(self, folder, *arguments):
        done = self.run("--csv", folder / "rows.csv", "--repetitions", 3, *arguments)
        require(done.returncode == 0, f"status {done.returncode} of {done.args}\n{done.stdout}{done.stderr}")
        with (folder / "rows.csv").open(newline="", encoding="ascii") as file:
            rows = list(csv.DictReader(file))
        require(rows and list(rows[0]) == COLUMNS, f"columns {list(rows[0]) if rows else 'none'}")
        return rows

    def refuses(self, sentence, *arguments):
        done = self.run(*arguments)
        require(done.returncode == 1, f"status {done.returncode} of {done.args}")
        require(sentence in done.stderr and done.stderr.count("\n") == 1, f"{done.args} says: {done.stderr!r}")


def wanted(length, density):
    return max(1, round(length * density))


def check_ratios(rows):
    """Ratios belong to the passes that were measured beside, which are rows too."""
    for row in rows:
        same = [other for other in rows if all(other[c] == row[c] for c in ("length", "density", "input"))]
        for base, column in (("read", "read_ratio"), ("rrw", "rrw_ratio")):
            seconds = float(next(other["seconds"] for other in same if other["selector"] == base))
            require(abs(float(row["seconds"]) / seconds - float(row[column])) < 1e-6 * float(row[column]) + 1e-9,
                    f"{column} of {row}")
        require(float(row["seconds"]) > 0, f"time of {row}")


def try_distributions(program, more=()):
    with tempfile.TemporaryDirectory() as name:
        inputs = ["normal", "heavy_tailed", "constant", "one_bin", "denormal", "jumping"]
        rows = program.rows(pathlib.Path(name), "--length", "1,70,50021", "--density", "0.001,0.3,1", "--input",
                            ",".join(inputs), *more)
        check_ratios(rows)
        require({row["input"] for row in rows} == set(inputs), "inputs")
        require({row["length"] for row in rows} == {"1", "70", "50021"}, "lengths")
        for row in rows:
            k = wanted(int(row["length"]), float(row["density"]))
            if row["selector"] in EXACT:
                require(int(row["selected"]) == k, f"{row} selects another number than {k}")
            if row["selector"] == "fused" and row["input"] == "normal":
                require(int(row["selected"]) == k, f"{row} selects another number than {k}")
            if row["selector"] == "fused" and row["input"] == "constant":
                require(row["selected"] == row["length"], f"{row} selects not all that tie")


def try_file(program):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        draw = random.Random(5)
        values = [draw.gauss(0, 1) for _ in range(4000)]
        (folder / "gradient.f32").write_bytes(struct.pack("<4000f", *values))
        rows = program.rows(folder, "--input", folder / "gradient.f32", "--density", "0.05", "--length", "12",
                            "--selector", "refine,fused")
        check_ratios(rows)
        require([row["selector"] for row in rows] == ["read", "rrw", "fused", "refine"], f"selectors of {rows}")
        require(all(row["length"] == "4000" for row in rows), "the length is the file's")
        require(all(row["selected"] == "200" for row in rows[2:]), f"selected of {rows}")


def bad_options(program):
    nothing = ("--length", 10, "--input", "normal", "--density", 0.5)
    for sentence, arguments in [
            ("--length: Value 0 not in range", ["--length", 0]),
            ("--density: Value", ["--density", "0.5,0"]),
            ("--density: Value", ["--density", 1.5]),
            ("--selector: best not in", ["--selector", "best"]),
            ("--repetitions: Value 0 not in range", ["--repetitions", 0]),
            ("--processes: Value 0 not in range 1 to 256", ["--processes", 0]),
            ("there is no input file", ["--input", "nowhere.f32"]),
            ("--nonsense", ["--nonsense"]),
            ("cannot", [*nothing, "--csv", "/nowhere/rows.csv"]),
    ]:
        program.refuses(sentence, *arguments)


def try_foreign_file(program):
    with tempfile.TemporaryDirectory() as name:
        for start in (b"\x93NUMPY\x01\x00", b"\x89HDF\r\n\x1a\n"):
            file = pathlib.Path(name) / "gradient.npy"
            file.write_bytes(start + bytes(4000))
            program.refuses(".tofile('gradient.f32')", "--input", file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("program")
    parser.add_argument("--mpirun", nargs=argparse.REMAINDER, help="ignored: the program has one rank")
    program = Program(parser.parse_args().program)
    checks = [
        ("distributions", lambda: try_distributions(program)),
        ("two processes", lambda: try_distributions(program, ["--processes", 2])),
        ("a file", lambda: try_file(program)),
        ("a file of another format", lambda: try_foreign_file(program)),
        ("bad options", lambda: bad_options(program)),
    ]
    failed = 0
    for name, check in checks:
        try:
            check()
            print(f"passed: {name}")
        except (Failure, subprocess.TimeoutExpired) as failure:
            failed += 1
            print(f"FAILED: {name}: {failure}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
