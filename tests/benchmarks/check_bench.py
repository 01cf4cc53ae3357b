#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs oktopk_bench on good and bad input and checks what it writes, from outside.

usage: check_bench.py BENCH_EXECUTABLE [--mpirun CMD...]

Knows nothing of the library: reads the files of --dump and --csv with the standard library alone, and compares them
with Topk(sum_i Topk(acc_i)) computed here, ties to the lower index. CMD starts MPI ranks; `-n P` is added to it,
or P alone where it ends in the flag.
"""

import argparse
import array
import csv
import gzip
import io
import math
import pathlib
import pickle
import random
import subprocess
import sys
import tempfile
import zipfile

TIME_LIMIT = 120
COLUMNS = ["algorithm", "ranks", "length", "k", "step", "seconds", "select_seconds", "words_sent_max",
           "words_received_max", "messages_sent_max", "local_selected_max", "global_selected", "bound_words",
           "words_are_a_floor", "own_seconds", "own_select_seconds", "output_density", "xi", "captured", "captured_by_top_k"]


class Failure(Exception):
    """One check that failed."""


def require(condition, sentence):
    if not condition:
        raise Failure(sentence)


# --- the tool -------------------------------------------------------------------------------------------------------


class Tool:
    """The program under test with one way of starting its ranks."""

    def __init__(self, executable, mpirun=None):
        self.executable = executable
        self.mpirun = mpirun

    def name(self):
        return "mpi" if self.mpirun else "in process"

    def command(self, ranks, arguments):
        if self.mpirun is None:
            return [self.executable, "--in-process", str(ranks), *arguments]
        return [*self.launch(ranks), self.executable, *arguments]

    def launch(self, ranks):
        flag = [] if self.mpirun[-1] in ("-n", "-np") else ["-n"]
        return [*self.mpirun, *flag, str(ranks)]

    def run(self, ranks, arguments):
        command = self.command(ranks, [str(each) for each in arguments])
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        except subprocess.TimeoutExpired as late:
            raise Failure(f"ran longer than {TIME_LIMIT} s: {' '.join(command)}") from late

    def succeed(self, ranks, arguments):
        done = self.run(ranks, arguments)
        require(done.returncode == 0, f"status {done.returncode} of {' '.join(done.args)}\n{done.stderr}")
        return done.stdout

    def fail(self, ranks, arguments, expected):
        done = self.run(ranks, arguments)
        what = f"{' '.join(done.args)}\n{done.stdout}{done.stderr}"
        require(done.returncode != 0, f"status 0 of {what}")
        said = [line for line in done.stderr.splitlines() if line.startswith("oktopk_bench: ")]
        require(len(said) == 1, f"{len(said)} messages instead of one from {what}")
        require(expected in said[0], f"no \"{expected}\" in the message of {what}")


# --- files ----------------------------------------------------------------------------------------------------------


def write_floats(path, values):
    numbers = array.array("f", values)
    if sys.byteorder == "big":
        numbers.byteswap()
    path.write_bytes(numbers.tobytes())


def read_array(path, kind):
    numbers = array.array(kind)
    numbers.frombytes(path.read_bytes())
    if sys.byteorder == "big":
        numbers.byteswap()
    return list(numbers)


def read_dump(folder, algorithm, rank):
    stem = f"{algorithm}.{rank}."
    return (read_array(folder / (stem + "indices.i64"), "q"), read_array(folder / (stem + "values.f32"), "f"),
            read_array(folder / (stem + "contributed.i64"), "q"))


def as_float32(values):
    return list(array.array("f", values))


# --- the reference --------------------------------------------------------------------------------------------------


def top(magnitude_of, k):
    """The k keys of largest magnitude, ties to the lower key."""
    return sorted(sorted(magnitude_of, key=lambda i: (-magnitude_of[i], i))[:k])


class Sums:
    """Sums over ranks of sparse contributions, and how far single precision may be off."""

    def __init__(self, contributions):
        self.parts = {}
        for mine in contributions:
            for index, value in mine.items():
                self.parts.setdefault(index, []).append(value)

    def at(self, index):
        return math.fsum(self.parts[index])

    def tolerance(self, index):
        parts = self.parts[index]
        # Multiples of 1/8 of moderate size add up without rounding in any order.
        if all((8 * each).is_integer() for each in parts):
            return 0.0
        return len(parts) * 2.0**-24 * math.fsum(abs(each) for each in parts)


def check_values(indices, values, sums):
    require(len(indices) == len(values), "indices and values differ in number")
    for index, value in zip(indices, values):
        require(index in sums.parts, f"nobody contributed at index {index}")
        off = abs(value - sums.at(index))
        require(off <= sums.tolerance(index), f"value {value} at index {index} should be {sums.at(index)}")


def check_exact(folder, accumulators, k, scheme):
    """The dump of exact selectors is Topk(sum_i Topk(acc_i)) with its values and contributions."""
    selections = [set(top({i: abs(x) for i, x in enumerate(acc)}, k)) for acc in accumulators]
    sums = Sums([{i: acc[i] for i in chosen} for acc, chosen in zip(accumulators, selections)])
    magnitudes = {i: abs(sums.at(i)) for i in sums.parts}
    expected = top(magnitudes, k)
    for rank, chosen in enumerate(selections):
        indices, values, contributed = read_dump(folder, scheme, rank)
        check_values(indices, values, sums)
        require(len(indices) == len(expected), f"{len(indices)} entries instead of {len(expected)}")
        # Two sums closer to each other than their rounding may change places; no others.
        edge = min((magnitudes[i] for i in expected), default=0.0)
        for index in set(indices) ^ set(expected):
            near = abs(magnitudes[index] - edge) <= 2 * sums.tolerance(index)
            require(near and sums.tolerance(index) > 0, f"index {index} is wrongly in or out of the result")
        require(indices == sorted(set(indices)), "indices do not ascend")
        require(contributed == sorted(chosen & set(indices)), f"wrong contributions of rank {rank}")


def check_same_everywhere(folder, algorithm, ranks):
    first = read_dump(folder, algorithm, 0)
    for rank in range(1, ranks):
        require(read_dump(folder, algorithm, rank)[:2] == first[:2], f"rank {rank} has another {algorithm} result")
    return first


def check_reused(folder, algorithm, accumulators):
    """Whatever the thresholds were, the values are the sums of what the ranks say they contributed."""
    indices, values, _ = check_same_everywhere(folder, algorithm, len(accumulators))
    require(indices == sorted(set(indices)) and len(indices) > 0, "indices do not ascend")
    given = [read_dump(folder, algorithm, rank)[2] for rank in range(len(accumulators))]
    check_values(indices, values, Sums([{i: acc[i] for i in mine} for acc, mine in zip(accumulators, given)]))
    for acc, mine in zip(accumulators, given):
        left = [abs(acc[i]) for i in set(indices) - set(mine)]
        require(not left or not mine or max(left) <= min(abs(acc[i]) for i in mine), "a larger entry was left out")


def check_dense(folder, accumulators, algorithm="dense"):
    indices, values, _ = check_same_everywhere(folder, algorithm, len(accumulators))
    everything = list(range(len(accumulators[0])))
    require(indices == everything, f"{algorithm} leaves something out")
    for rank in range(len(accumulators)):
        require(read_dump(folder, algorithm, rank)[2] == everything, f"rank {rank} did not contribute everything")
    check_values(indices, values, Sums([dict(enumerate(acc)) for acc in accumulators]))


# --- good input -----------------------------------------------------------------------------------------------------


def heavy_tailed(rng, length):
    return as_float32(rng.gauss(0, 1) ** 3 * (1 + 20 * (i * 7 % length < length // 9)) for i in range(length))


def full_of_ties(rng, length):
    return as_float32(rng.randint(-5, 5) / 8 for _ in range(length))


def mostly_nothing(rng, length):
    return as_float32(rng.choice([0.0] * 60 + [-0.0, 1.5, -0.25]) for _ in range(length))


def crowded(rng, length):
    return as_float32(rng.uniform(-1, 1) if i >= length - length // 16 else rng.uniform(-1, 1) / 64
                      for i in range(length))


def write_inputs(folder, kind, ranks, length, iterations, seed):
    """Writes the files of all ranks and gives the accumulators of the last iteration and the patterns."""
    rng = random.Random(seed)
    patterns = []
    accumulators = []
    for iteration in range(iterations):
        accumulators = [kind(rng, length) for _ in range(ranks)]
        for rank, values in enumerate(accumulators):
            write_floats(folder / f"gradient{iteration}.{rank}.f32", values)
        patterns.append(str(folder / f"gradient{iteration}.{{rank}}.f32"))
    return accumulators, ",".join(patterns)


def check_csv(path, algorithms, ranks, length, k, steps):
    with path.open(newline="", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    require(rows and list(rows[0]) == COLUMNS, f"columns of the CSV file: {list(rows[0]) if rows else 'none'}")
    expected = [(name, str(step)) for name in algorithms for step in range(steps)]
    require([(row["algorithm"], row["step"]) for row in rows] == expected, "rows of the CSV file")
    for row in rows:
        dense = row["algorithm"] == "dense"
        require(int(row["ranks"]) == ranks and int(row["length"]) == length, f"ranks or length in {row}")
        require(int(row["k"]) == (length if dense else k), f"k in {row}")
        require(float(row["seconds"]) > 0 and float(row["select_seconds"]) >= 0, f"times in {row}")
        sent = float(row["words_sent_max"])
        require((sent > 0) == (ranks > 1) and (int(row["messages_sent_max"]) > 0) == (ranks > 1), f"traffic in {row}")
        if dense:
            require(row["local_selected_max"] == row["global_selected"] == str(length), f"selection in {row}")
            require(sent <= float(row["bound_words"]), f"more words than the bound in {row}")


def try_exact(tool, kind, ranks, length, k, iterations, scheme="ok_topk", more=()):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        accumulators, patterns = write_inputs(folder, kind, ranks, length, iterations, ranks * length + k)
        dump = folder / "deep" / "dump"
        tool.succeed(ranks, ["--algorithm", f"{scheme},dense", "--input", patterns, "--k", k, "--dump", dump, "--csv",
                             folder / "rows.csv", *more])
        check_exact(dump, accumulators, k, scheme)
        check_same_everywhere(dump, scheme, ranks)
        check_dense(dump, accumulators)
        check_csv(folder / "rows.csv", [scheme, "dense"], ranks, length, k, iterations)
        require(len(list(dump.iterdir())) == 6 * ranks, "other files in the folder of dumps")


def try_reused(tool, kind, ranks, length, iterations, scheme, more=()):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        accumulators, patterns = write_inputs(folder, kind, ranks, length, iterations, ranks + length)
        tool.succeed(ranks, ["--algorithm", f"{scheme},paper_ok_topk(tau_prime=2)", "--input", patterns, "--density", 0.02,
                             "--dump", folder / "dump", *more])
        check_reused(folder / "dump", scheme, accumulators)
        check_reused(folder / "dump", "paper_ok_topk(tau_prime=2)", accumulators)


DENSE_FAMILY = ["ring", "ring_chunked", "ring_pipelined", "halving_doubling", "recursive_doubling"]


def try_dense_family(tool, ranks, length):
    """Each is the exact sum; rounding apart, of which the tolerance of a sum in any order knows."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        accumulators, patterns = write_inputs(folder, heavy_tailed, ranks, length, 2, ranks + length)
        tool.succeed(ranks, ["--algorithm", ",".join(DENSE_FAMILY), "--input", patterns, "--k", 1, "--dump",
                             folder / "dump"])
        for algorithm in DENSE_FAMILY:
            check_dense(folder / "dump", accumulators, algorithm)


def try_codec(tool, ranks, codec, share):
    """A coded algorithm sends that share of what goes uncoded."""
    with tempfile.TemporaryDirectory() as name:
        rows_file = pathlib.Path(name) / "rows.csv"
        schemes = [f"{each}{code}" for each in ("ring_chunked", "recursive_doubling") for code in ("", f"({codec})")]
        tool.succeed(ranks, ["--algorithm", ", ".join(schemes), "--length", 200_000, "--k", 1, "--steps", 1, "--csv",
                             rows_file])
        with rows_file.open(newline="", encoding="ascii") as file:
            sent = {row["algorithm"]: float(row["words_sent_max"]) for row in csv.DictReader(file)}
        require(list(sent) == schemes, f"{schemes} are called {list(sent)}")
        for plain, coded in zip(schemes[::2], schemes[1::2]):
            ratio = sent[coded] / sent[plain]
            require(abs(ratio - share) < 0.01, f"{coded} sends {ratio} of the words")


def good_input(tool, rank_counts):
    for ranks in rank_counts:
        yield f"the dense family, P = {ranks}", lambda p=ranks: try_dense_family(tool, p, 1003)
    yield "codec bfloat16", lambda: try_codec(tool, 4, "codec=bfloat16", 0.5)
    yield "codec block_float", lambda: try_codec(tool, 4, "codec=block_float", 8.25 / 32)
    yield "codec a message", lambda: try_codec(tool, 2, "codec=block_float, rate=12, codec_level=message", 12.25 / 32)
    for ranks in rank_counts:
        yield f"exact, heavy-tailed, P = {ranks}", lambda p=ranks: try_exact(tool, heavy_tailed, p, 3001, 60, 3)
        yield f"exact, ties, P = {ranks}", lambda p=ranks: try_exact(tool, full_of_ties, p, 1500, 111, 2)
        yield f"reused, P = {ranks}", lambda p=ranks: try_reused(
            tool, heavy_tailed, p, 3001, 4, "ok_topk(local_select=reused, global_select=reused, tau_prime=2)")
    some = rank_counts[-1]
    for k in (0, 1, 400):
        yield f"exact, k = {k} of 400", lambda k=k: try_exact(tool, heavy_tailed, some, 400, k, 2)
    yield "exact, fewer than k not zero", lambda: try_exact(tool, mostly_nothing, some, 900, 100, 2)
    yield "exact, n < P", lambda: try_exact(tool, full_of_ties, some, some - 1, 2 if some > 2 else 0, 2)
    for regions in ("uniform", "balanced", "evened"):
        yield f"exact, crowded, {regions}", lambda r=regions: try_exact(
            tool, crowded, some, 5000, 50, 2, f"ok_topk(partition={r})", ["--warmup", 3])
    yield "mixed selection", lambda: try_reused(tool, crowded, some, 2000, 3, "ok_topk(global_select=reused,tau=1)",
                                                ["--steps", 9, "--warmup", 1])


# --- what the tool says of itself -----------------------------------------------------------------------------------


def try_synthetic(tool):
    """Synthetic input is the same in every run and another one with another seed."""
    with tempfile.TemporaryDirectory() as name:
        results = []
        for number, seed in enumerate((7, 7, 8)):
            folder = pathlib.Path(name) / str(number)
            tool.succeed(3, ["--algorithm", "ok_topk", "--length", 20000, "--density", 0.01, "--seed", seed, "--steps",
                             4, "--warmup", 2, "--dump", folder])
            results.append(check_same_everywhere(folder, "ok_topk", 3)[:2])
        require(results[0] == results[1], "the same seed gives different results")
        require(results[0] != results[2], "different seeds give the same result")


def try_help(tool):
    said = tool.succeed(2, ["--help"])
    require("--density" in said and said.count("--no-verify") == 1, f"--help says\n{said}")
    listed = tool.succeed(2, ["--list"])
    require(listed.count("ring_chunked:") == 1 and "codec=none" in listed, f"--list says\n{listed}")


def try_quiet(tool):
    done = tool.run(2, ["--algorithm", "dense", "--length", 1000, "--k", 10, "--steps", 2])
    require(done.returncode == 0 and "#" not in done.stderr, f"a progress bar without a terminal:\n{done.stderr}")
    require("dense" in done.stdout and "words sent" in done.stdout, f"no table:\n{done.stdout}")


# --- bad input ------------------------------------------------------------------------------------------------------

PLAIN = ["--algorithm", "ok_topk", "--length", 1000, "--k", 10]


def named(algorithm):
    return ["--algorithm", algorithm, "--length", 1000, "--k", 10]


def bad_options():
    """Arguments and what the message must contain."""
    source = ["--algorithm", "ok_topk", "--length", 1000]
    return [
        (["--length", 1000, "--k", 10], "--algorithm"),
        (named("ok_topkk"), "ok_topkk"),
        (named("dense,dense"), "twice"),
        (named("ok_topk("), "NAME(KEY=VALUE, ...)"),
        ([*PLAIN, "--colour", "red"], "--colour"),
        ([*PLAIN, "stray"], "stray"),
        ([*PLAIN, "--kokkos-colour=red"], "--kokkos-colour"),
        ([*PLAIN, "--density", 0.1], "[--density,--k]"),
        (source, "[--density,--k]"),
        (["--algorithm", "ok_topk", "--k", 10], "[--length,--input]"),
        ([*PLAIN, "--input", "x.{rank}"], "[--length,--input]"),
        ([*source, "--k", 1001], "1001"),
        ([*source, "--k", -1], "--k"),
        ([*source, "--k", "ten"], "--k"),
        ([*source, "--k", 2.5], "--k"),
        ([*source, "--density", 0], "--density"),
        ([*source, "--density", 1.5], "--density"),
        ([*source, "--density", "nan"], "--density"),
        ([*source, "--k"], "--k"),
        (["--algorithm", "ok_topk", "--length", 0, "--k", 0], "--length"),
        (["--algorithm", "ok_topk", "--length", 3_000_000_000, "--k", 5], "3000000000"),
        ([*PLAIN, "--steps", 0], "--steps"),
        ([*PLAIN, "--warmup", -1], "--warmup"),
        (named("ok_topk(tau=0)"), "tau"),
        (named("ok_topk(tau=often)"), "tau"),
        (named("ok_topk(local_select=reused, tau_prime=-3)"), "tau'"),
        (named("ok_topk(local_select=best)"), "exact, reused"),
        (named("ok_topk(global_select=best)"), "exact, reused"),
        (named("ok_topk(partition=fair)"), "evened, balanced, uniform"),
        (["--algorithm", "dense", "--input", "gradient.f32", "--k", 1], "{rank}"),
        (named("ok_topk(codec=block_float)"), "no option \"codec\""),
        (named("ring_chunked(codec=gzip)"), "none, identity, bfloat16, block_float"),
        (named("ring_chunked(codec=bfloat16, rate=8)"), "no option \"rate\""),
        (named("ring_chunked(codec=block_float, rate=17)"), "between 4 and 16"),
        (named("ring_chunked(codec=block_float, codec_level=bit)"), "collective, message"),
        (named("ring_chunked(codec=zfp, codec_level=message)"), "zfp"), # loses again, or is not there
    ]


def bad_files():
    """What is done to the file of one rank, and what the message must contain."""
    return [
        ("missing", lambda path: path.unlink(), "there is no input file"),
        ("a folder", lambda path: (path.unlink(), path.mkdir()), "no regular file"),
        ("empty", lambda path: path.write_bytes(b""), "is empty"),
        ("no multiple of 4", lambda path: path.write_bytes(path.read_bytes()[:-2]), "no multiple of 4"),
        ("cut short", lambda path: path.write_bytes(path.read_bytes()[:-8]), "values"),
        ("longer", lambda path: path.write_bytes(path.read_bytes() + bytes(4)), "values"),
        ("not a number", lambda path: write_floats(path, [1.0] * 499 + [math.nan]), "finite"),
        ("infinite", lambda path: write_floats(path, [-math.inf] + [1.0] * 499), "finite"),
    ]


def numpy_file(values):
    """What numpy.save writes of float32 values."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + array.array("f", values).tobytes()


def zip_file(values):
    """An archive with an array in it, as NumPy's .npz and PyTorch's .pt are."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("gradient.npy", numpy_file(values))
    return packed.getvalue()


def foreign_files():
    """Files of other formats, of as many values as there should be, and what the message must contain."""
    values = [0.25] * 500
    one_line = "numpy.asarray(g).astype('<f4').tofile('gradient.f32')"
    return [
        ("of NumPy", numpy_file(values), "is a NumPy file (.npy), not raw little-endian float32"),
        ("of NumPy, odd", numpy_file(values) + b"x", "is a NumPy file (.npy)"),
        ("of NumPy, what to do", numpy_file(values), one_line),
        ("in a zip archive", zip_file(values), "is a zip archive, as NumPy's .npz and PyTorch's .pt are"),
        ("of pickle", pickle.dumps(values, 4), "is a Python pickle"),
        ("packed", gzip.compress(numpy_file(values)), "is compressed with gzip"),
        ("of text", b"0.25,-1\n" * 250, "is text"),
    ]


def try_bad_options(tool, arguments, expected):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tool.fail(2, [*arguments, "--csv", folder / "rows.csv", "--dump", folder / "dump"], expected)
        require(not list(folder.iterdir()), f"left behind: {list(folder.iterdir())}")


def try_bad_file(tool, damage, expected, ranks, rank, iteration):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        _, patterns = write_inputs(folder, heavy_tailed, ranks, 500, 2, 1)
        damage(folder / f"gradient{iteration}.{rank}.f32")
        out = folder / "out"
        out.mkdir()
        tool.fail(ranks, ["--algorithm", "dense,ok_topk", "--input", patterns, "--k", 9, "--csv", out / "rows.csv",
                          "--dump", out / "dump"], expected)
        require(not list(out.iterdir()), f"left behind: {list(out.iterdir())}")


def try_bad_output(tool):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tool.fail(2, [*PLAIN, "--csv", folder / "absent" / "rows.csv"], "rows.csv")
        tool.fail(2, [*PLAIN, "--csv", folder], "folder")
        file = folder / "file"
        file.write_text("kept", encoding="ascii")
        tool.fail(2, [*PLAIN, "--dump", file], "no folder")
        tool.fail(2, [*PLAIN, "--dump", file / "below"], "file")
        require([each.name for each in folder.iterdir()] == ["file"], "something was left behind")
        require(file.read_text(encoding="ascii") == "kept", "a file of others was touched")


def bad_input(tool):
    # Every start under MPI takes about a second; what is wrong with an option does not depend on who starts the ranks.
    every = 1 if tool.mpirun is None else 6
    for arguments, expected in bad_options()[::every]:
        yield f"refuses {' '.join(map(str, arguments))}", lambda a=arguments, e=expected: try_bad_options(tool, a, e)
    for what, damage, expected in bad_files():
        yield f"refuses a file {what}", lambda d=damage, e=expected: try_bad_file(tool, d, e, 3, 2, 1)
    for what, content, expected in foreign_files():
        yield (f"refuses a file {what}",
               lambda c=content, e=expected: try_bad_file(tool, lambda path: path.write_bytes(c), e, 3, 2, 1))
    yield "refuses a missing file of rank 0", lambda: try_bad_file(tool, lambda p: p.unlink(), "no input file", 2, 0, 0)
    yield "refuses bad places for output", lambda: try_bad_output(tool)


def other_input(tool):
    yield "synthetic input", lambda: try_synthetic(tool)
    yield "--help", lambda: try_help(tool)
    yield "quiet without a terminal", lambda: try_quiet(tool)


def ranks_started_differently(tool):
    def check():
        several = Tool(tool.executable, tool.mpirun)
        several.command = lambda ranks, arguments: [
            *tool.launch(1), tool.executable, *arguments, "--steps", "2", ":",
            "-n", "1", tool.executable, *arguments, "--steps", "3"]
        several.fail(2, PLAIN, "disagree")
        tool.fail(2, [*PLAIN, "--in-process", 2], "--in-process")

    yield "refuses ranks started differently", check


def report(checks, where=""):
    """Makes the checks, (what, function) each, and says how they went; gives the status to exit with."""
    where = f"{where}: " if where else ""
    failed = 0
    for what, check in checks:
        try:
            check()
            print(f"ok      {where}{what}", flush=True)
        except (Failure, OSError, subprocess.TimeoutExpired) as fault:
            failed += 1
            print(f"FAILED  {where}{what}\n{fault}", flush=True)
    print(f"{len(checks) - failed} of {len(checks)} checks passed")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("executable")
    parser.add_argument("--mpirun", nargs=argparse.REMAINDER, help="launcher and its options")
    given = parser.parse_args()
    tool = Tool(given.executable, given.mpirun)
    checks = [*good_input(tool, (2, 4) if given.mpirun else (1, 2, 3, 4, 5, 8)), *other_input(tool), *bad_input(tool)]
    if given.mpirun:
        checks += ranks_started_differently(tool)
    return report(checks, tool.name())


if __name__ == "__main__":
    sys.exit(main())
