# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Selection on one rank, beside passes that only read and write memory.

Runs select_bench on every input and length, and puts its medians together: seconds, and their
ratios to the two passes. With several programs (--bench BEFORE,AFTER) these take turns. Builds
select_bench below --build unless --bench names it, and installs what is missing on Debian and
Ubuntu. The table goes to select/ there, or where --csv says. What follows "--" goes to select_bench
as it is.
"""

import itertools
import json
import pathlib
import tempfile

from . import arguments, programs, results, tables

FIGURES = ("seconds", "read_ratio", "rrw_ratio", "selected")


def add_options(parser):
    """The options of `select`."""
    arguments.add(parser, "--rounds", "--csv", "--build", rounds=1, plot=None,
                  build=programs.ROOT / "build", passed_on=[])
    parser.add_argument("--length", type=arguments.numbers(arguments.whole), metavar="LIST",
                        default="1000000,14728266,27569568,133547324",
                        help="lengths: those of VGG-16, LSTM and BERT, and a smaller one")
    parser.add_argument("--density", type=arguments.numbers(arguments.share), metavar="LIST",
                        default="0.001,0.01,0.02", help="shares of the entries to select")
    parser.add_argument("--input", type=arguments.names, metavar="LIST",
                        default="normal,heavy_tailed", help="distributions, or files")
    parser.add_argument("--selector", type=arguments.names, metavar="LIST", default=[],
                        help="only these, and the passes (default: all)")
    parser.add_argument("--processes", type=arguments.whole, metavar="P", default=1,
                        help="ranks of MPI that measure at the same time")
    parser.add_argument("--bench", metavar="PATH[,PATH]", default=[],
                        type=lambda text: [arguments.program(each) for each in text.split(",")],
                        help="the program select_bench (default: built)")


def built(given):
    """select_bench."""
    packages = [*programs.COMPILER, *programs.OPEN_MPI, "libcli11-dev", "libbenchmark-dev"]
    folder = given.build / "benchmarks-mpi"
    programs.prepare(packages, folder, "select_bench", *programs.RELEASE, programs.WITH_OPEN_MPI,
                     "-DOKTOPK_ENABLE_EXAMPLES=OFF")
    return [folder / "benchmarks" / "select_bench"]


def medians(path):
    """The median of each benchmark in a JSON file: its selector, length, density and figures."""
    with open(path, encoding="utf-8") as file:
        found = json.load(file)["benchmarks"]
    for each in found:
        if each.get("aggregate_name") == "median":
            selector, length, density, _ = each["run_name"].split("/", 3)
            each["seconds"] = each["real_time"] / 1e3
            yield ((selector, length.split(":")[1], density.split(":")[1]),
                   {name: each[name] for name in FIGURES})


def run(given):
    """Measures, prints the table and writes the file."""
    programs.set_outputs(given, "select", "selectors")
    benches = given.bench or built(given)
    options = ["--density", ",".join(map(str, given.density)), "--benchmark_out_format=json"]
    if given.selector:
        options.append(f"--benchmark_filter=^({'|'.join(['read', 'rrw', *given.selector])})/")
    ranks = programs.on_one_machine(["mpirun", "-n", given.processes])
    start = ranks if given.processes > 1 else []
    samples = {}
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.json"
        for name, turn, length, bench in itertools.product(given.input, range(given.rounds),
                                                           given.length, benches):
            if pathlib.Path(name).is_file() and length != given.length[0]:
                continue  # its length is its own
            programs.say(f"Measuring {name}, n = {length}, with {bench}")
            programs.run([*start, bench, "--n", length, "--input", name, *options,
                          f"--benchmark_out={out}", *given.passed_on], "the measurement failed")
            for case, figures in medians(out):
                samples.setdefault((str(bench), *case, name), []).append(figures)
    rows = []
    for (bench, selector, length, density, name), of in samples.items():
        figures = {each: f"{results.median(of, each):.9g}" for each in FIGURES}
        build = {"build": bench} if len(benches) > 1 else {}
        rows.append({**build, "selector": selector, "length": length, "density": density,
                     "input": name, **figures})
    programs.headline(f"{given.processes} at a time, medians")
    print(tables.selectors(rows))
    results.write(given.csv, rows)
    programs.wrote(given.csv)
