# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bits an entry and speed of the sparse formats, on one core.

Encodes and decodes messages in every format of the library, beside what others would do: copies of
the arrays, a Rice code, StreamVByte and zstd, the last two where they are installed. Behind "--",
--files names accumulators of your own, for instance.
"""

import json
import pathlib
import re
import tempfile

from . import arguments, programs, show, tables

FIGURES = ["entries", "messages", "bits_per_entry", "gap_entropy", "choice_bits", "value_error"]
NAME = r"(?P<format>[^/]+)/(?P<what>\w+)/(?P<input>.*)/n:(?P<length>\d+)/density:(?P<density>[^/]+)" \
       r"/parts:(?P<parts>\d+)"


def add_options(parser):
    """The options of `formats`."""
    arguments.add_building(parser, "formats", "format_bench")
    parser.add_argument("--program", type=arguments.program, metavar="PATH",
                        help="format_bench (default: built below --build)")


def built(given):
    """format_bench, which is built unless it is given."""
    return given.program or programs.benchmark(
        given, "format_bench", ["libbenchmark-dev", "libstreamvbyte-dev", "libzstd-dev"])


def rows_of(measured):
    """A row for each format and input, of what Google Benchmark has written."""
    table = {}
    for each in measured:
        parts = re.fullmatch(NAME, each["run_name"])
        if each.get("aggregate_name") != "median" or parts is None:
            continue
        case = {name: parts[name] for name in ("input", "length", "density", "parts", "format")}
        row = table.setdefault(tuple(case.values()),
                               {**case, **{name: f"{each[name]:.6g}" for name in FIGURES}})
        row[f"{parts['what']}_per_second"] = f"{each['entries_per_second']:.4g}"
    return [row for row in table.values() if all(name in row for name in tables.SPEEDS)]


def run(given):
    """Measures, prints the tables and writes the files."""
    programs.set_outputs(given, "formats", "formats")
    program = built(given)
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.json"
        programs.say("Measuring")
        programs.run([program, f"--benchmark_out={out}", "--benchmark_repetitions=5",
                      *given.passed_on], "the measurement failed", "Measuring")
        rows = rows_of(json.loads(out.read_text(encoding="utf-8"))["benchmarks"])
    if not rows:
        programs.fail("no format was both encoded and decoded, or not more than once, so there are no medians")
    title = "Sparse formats on one core"
    show.report(given, rows, title, title, f"Measured on {programs.machine()}. A mark for each input.")
