# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files of gradients and of results, tables, and what the results should be, of Python alone."""

import array
import json
import random
import struct

from conftest import succeed


def write_floats(path, values):
    """Writes raw little-endian float32."""
    path.write_bytes(struct.pack(f"<{len(values)}f", *values))


def read_array(path, kind):
    """Reads a raw little-endian array."""
    return [value for value, in struct.iter_unpack(f"<{kind}", path.read_bytes())]


def read_dump(folder, algorithm, rank):
    """Indices, values and contributed indices of a rank."""
    stem = f"{algorithm}.{rank}."
    return (read_array(folder / (stem + "indices.i64"), "q"),
            read_array(folder / (stem + "values.f32"), "f"),
            read_array(folder / (stem + "contributed.i64"), "q"))


def medians_of(program, folder, *arguments):
    """The medians that a program with Google Benchmark writes; its table has them as well."""
    out = folder / "out.json"
    said = succeed(program.path, "--benchmark_repetitions=3", f"--benchmark_out={out}", *arguments)
    rows = [each for each in json.loads(out.read_text())["benchmarks"] if each["aggregate_name"] == "median"]
    assert all(f"{row['name']} " in said for row in rows)
    return rows


def table_of(said):
    """Of all tables in a text the cells by the first cell of the line and the heading of the column."""
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in said.splitlines() if line.startswith("|")]
    found, heading = {}, []
    for cells, below in zip(lines, [*lines[1:], [""]]):
        if set(below[0]) == {"-"}:
            heading = cells
        elif set(cells[0]) != {"-"}:
            found.setdefault(cells[0].strip("*"), {}).update(zip(heading, cells))
    return found


def numpy_file(values, kind="<f4", shape=None, fortran=False, version=1):
    """What numpy.save writes of values of a kind, as one dimension unless there is a shape."""
    shape = shape or f"({len(values)},)"
    header = f"{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    width = 2 if version == 1 else 4
    header += " " * (-(len(header) + 9 + width) % 64) + "\n"
    letter = {"f2": "e", "f4": "f", "f8": "d", "i4": "i"}[kind[1:]]
    return (b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(width, "little")
            + header.encode() + struct.pack(f"{kind[0]}{len(values)}{letter}", *values))


def as_float32(values):
    """The values as single precision has them."""
    return list(array.array("f", values))


def heavy_tailed(rng, length):
    """Most values small, some very large, more of them in a ninth of the places."""
    return as_float32(rng.gauss(0, 1) ** 3 * (1 + 20 * (i * 7 % length < length // 9))
                      for i in range(length))


def full_of_ties(rng, length):
    """Eleven different values."""
    return as_float32(rng.randint(-5, 5) / 8 for _ in range(length))


def mostly_nothing(rng, length):
    """Few that are not zero."""
    return as_float32(rng.choice([0.0] * 60 + [-0.0, 1.5, -0.25]) for _ in range(length))


def crowded(rng, length):
    """All that is large in the last sixteenth."""
    return as_float32(rng.uniform(-1, 1) / (1 if i >= length - length // 16 else 64)
                      for i in range(length))


def write_inputs(folder, kind, ranks, length, iterations, seed):
    """Writes the files of all ranks; gives the last iteration's accumulators, and the patterns."""
    rng = random.Random(seed)
    patterns = []
    accumulators = []
    for iteration in range(iterations):
        accumulators = [kind(rng, length) for _ in range(ranks)]
        for rank, values in enumerate(accumulators):
            write_floats(folder / f"gradient{iteration}.{rank}.f32", values)
        patterns.append(str(folder / f"gradient{iteration}.{{rank}}.f32"))
    return accumulators, ",".join(patterns)


def top(magnitude_of, k):
    """The k keys of largest magnitude, ties to the lower key."""
    return sorted(sorted(magnitude_of, key=lambda i: (-magnitude_of[i], i))[:k])
