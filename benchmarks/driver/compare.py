# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Every scheme on the same gradients in one table, and what it means in words.

Words sent, messages, time in selection and in communication, and how much of the true sum arrives.
Below the table: which scheme wins, what it saves an iteration, and of a step of --step-ms.
Unless said otherwise: 8 ranks, n = 2^20, 10 steps (or one for each pattern), all schemes but four
of the five textbook ones, for which ring_chunked stands; "--algorithm all" is all that there are.
Where matplotlib is missing there is a picture with --plot or --yes only.
"""

import os
import pathlib
import re
import shlex
import shutil
import statistics
import sys
import tempfile

from . import arguments, programs, results, show, tables
from .results import mean, median, most, spread

# The schemes of the table unless some are named; ring_chunked stands for all of the textbook's dense
# allreduces.
SHOWN = {"ok_topk", "paper_ok_topk", "topk_a", "topk_dsa", "gtopk", "gaussian_k", "dense",
         "dense_rabenseifner", "dense_bfloat16", "ring_chunked"}
LATENCY = 50
RANKS = 8
LENGTH = 1 << 20


def add_options(parser):
    """The options of `compare`."""
    arguments.add_building(parser, "compare", "oktopk_bench", "--density", "--algorithm", "--steps", "--warmup",
                           "--deadline", "--bench", density=0.01, warmup=3)
    gradients, ranks = parser.add_mutually_exclusive_group(), parser.add_mutually_exclusive_group()
    arguments.add(gradients, "--length")
    arguments.add(ranks, "--ranks")
    gradients.add_argument("--input", metavar="PATTERN[,PATTERN...]",
                           help="your own gradients: .npy files, or raw little-endian float32; {rank} "
                           "stands for the rank, {rank:02} for two digits; several are successive iterations")
    parser.add_argument("--rate", type=arguments.rate, metavar="RATE",
                        help="add the time that the words take on links of 100mbit, 10gbit or so")
    parser.add_argument("--latency", type=arguments.duration, metavar="US",
                        help=f"and that of each message, in microseconds (default: {LATENCY})")
    parser.add_argument("--step-ms", type=arguments.positive, metavar="T",
                        help="milliseconds of a whole training step with the dense allreduce: says "
                        "how much shorter it becomes")
    parser.add_argument("--mpi", action="store_true", help="MPI ranks on this machine instead of "
                        "ranks that take turns in one process")
    ranks.add_argument("--launcher", type=shlex.split, metavar="COMMAND",
                       help="MPI ranks wherever COMMAND starts them: 'srun -n 64', 'mpirun -n 64'")
    parser.add_argument("--rows", type=arguments.output, metavar="FILE",
                        help="write one row per scheme and iteration as well")


def refuse_contradictions(given):
    """Ends the program where two options contradict each other."""
    if given.rate and (given.mpi or given.launcher):
        programs.fail("--rate is for ranks in one process; times of MPI have a network in them")
    if given.latency is not None and not given.rate:
        programs.fail("--latency goes with --rate")


def patterns_in(text):
    """The patterns of --input, as oktopk_bench reads them: each has a {rank}, so that a comma before that belongs to a
    name, and so does one behind the last."""
    patterns, begun = [], ""
    for part in text.split(","):
        begun += part
        if "{rank" in begun:
            patterns.append(begun)
            begun = ""
        else:
            begun += ","
    if begun and patterns:
        patterns[-1] += "," + begun.removesuffix(",")
    return patterns or [text]


def path_of_rank(pattern, rank):
    """The file of a rank, as oktopk_bench knows it: {rank}, or a form of Python that puts zeros in front."""
    if "{rank" not in pattern:
        programs.fail(f"{pattern} has no {{rank}} in it, so all ranks would read one file")
    if re.search(r"\{rank(?!(:d?|:(0>|0=|>0|=0|0)[0-9]{1,2}d?)?\})", pattern):
        programs.fail(f"{pattern}: the place of the rank is {{rank}}, or {{rank:02}} for two digits with zeros in front")
    return pathlib.Path(re.sub(r"\{rank[^}]*?([0-9]{0,2})d?\}", lambda form: f"{rank:0{int(form[1] or 0)}}", pattern))


def check_inputs(given):
    """Ends the program where a file of gradients is missing, before anything is built, and says where there are files of
    more ranks. Files of ranks that --launcher starts may lie on other machines."""
    ranks = given.ranks or RANKS
    patterns = patterns_in(given.input) if given.input else []
    if patterns and not given.launcher and (more := path_of_rank(patterns[0], ranks)).exists():
        print(f"note: {ranks} ranks take the files of ranks 0 to {ranks - 1}, and there is {more}, too: --ranks takes more",
              file=sys.stderr)
    for pattern in patterns:
        for rank in range(0 if given.launcher else ranks):
            path = path_of_rank(pattern, rank)
            if not path.exists():
                programs.fail(f"there is no input file {path}" + (
                    f", but those of ranks 0 to {rank - 1}: --ranks {rank} takes them" if rank else ""))
            if not path.is_file() or not os.access(path, os.R_OK):
                programs.fail(f"the input file {path} is no file that can be read")


def command_of(bench, given, ranks):
    """How ranks are started, as words and as a command."""
    if given.launcher:
        # In a container everybody is root. Other settings for one machine hinder on several.
        as_root = ["env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"]
        return f"started by {shlex.join(given.launcher)}", [*as_root, *given.launcher, bench]
    if not given.mpi:
        return f"on {ranks} ranks that take turns", [bench, "--in-process", ranks]
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None:
        programs.fail("--mpi needs mpirun; --launcher names another command")
    return f"on {ranks} ranks of MPI", programs.on_one_machine([mpirun, "-n", ranks, bench])


def wire_seconds(row, rate, latency):
    """The time that a step takes on a network: its words, and its messages one after the other."""
    words = max(float(row["words_sent_max"]), float(row["words_received_max"]))
    return (words * 32 / arguments.bits_per_second(rate)
            + float(row["messages_sent_max"]) * latency / 1e6)


def k_of(rows, k):
    """The entries that a scheme of these rows selects: its text may have a density of its own. A dense scheme is compared
    with the others at the common `k`."""
    kind, own = programs.kind_of_scheme(rows[0]["algorithm"]), int(rows[0]["k"])
    return own if kind == "sparse" or (kind is None and own < int(rows[0]["length"])) else k


def summed_up(rows, k, turns, rate, latency):
    """A row per scheme; `k` is that of --density; `turns`: the ranks took turns; `rate`: of a network to add, or None."""
    table = {}
    own = "own_" if turns else ""
    for name, of in results.grouped(rows).items():
        wire = statistics.fmean(wire_seconds(row, rate, latency) for row in of) if rate else 0
        whole = median(of, own + "seconds")
        selection = min(whole, median(of, own + "select_seconds"))
        words = most(of, "words_sent_max")
        ranks = int(of[0]["ranks"])
        selected = k_of(of, k)
        least = 2 * selected * (ranks - 1) / ranks
        table[name] = {
            "algorithm": name,
            "ranks": ranks,
            "length": of[0]["length"],
            "k": selected,
            "words_sent": words,
            "words_are_a_floor": of[0]["words_are_a_floor"],
            "lower_bound_ratio": words / least if least > 0 else "",
            "messages": int(most(of, "messages_sent_max")),
            "selection_seconds": selection,
            "communication_seconds": whole - selection + wire,
            "seconds": whole + wire,
            "speedup_over_dense": "",
            "output_density": mean(of, "output_density"),
            "xi": mean(of, "xi"),
            "captured": mean(of, "captured"),
            "captured_by_top_k": mean(of, "captured_by_top_k"),
            "spread": spread(of, own + "seconds", wire),
        }
    if "dense" in table:
        for row in table.values():
            row["speedup_over_dense"] = table["dense"]["seconds"] / row["seconds"]
    return [{name: f"{value:.9g}" if isinstance(value, float) else value
             for name, value in row.items()} for row in table.values()]


def kind_of_times(given, network, how):
    """Whether the times were measured or are a forecast, in sentences."""
    if given.mpi or given.launcher:
        kind = f"The times are measured, {how}."
    elif network:
        kind = (f"The times are a forecast: the measured work of a rank, and its words and messages on "
                f"{network}{' (assumed: see --latency)' if given.latency is None else ''}.")
    else:
        kind = ("The times are a forecast for a network that takes no time: the measured work of a "
                "rank alone. --rate 1gbit adds a network; --mpi and --launcher measure.")
    return kind + ("" if given.input else " The gradients are synthetic; --input takes your own.")


def run(given):
    """Measures, prints the table and writes the files."""
    refuse_contradictions(given)
    check_inputs(given)
    mpi = given.mpi or given.launcher
    schemes = given.algorithm
    if schemes in (None, ["all"]):
        schemes = [name for name in programs.catalogue() if schemes or name in SHOWN]
    elif not given.bench:
        programs.check_schemes(schemes)
    programs.set_outputs(given, "compare", "schemes")
    bench = given.bench or programs.benchmark(given, "oktopk_bench", mpi=mpi)
    options = ["--algorithm", ",".join(schemes), "--density", given.density,
               "--warmup", given.warmup, "--quality"]
    options += ["--input", given.input] if given.input else ["--length", given.length or LENGTH]
    options += ["--steps", given.steps] if given.steps else []
    how, command = command_of(bench, given, given.ranks or RANKS)
    if given.launcher:  # rank 0 may run on another machine, which shares this folder, but not /tmp
        given.build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.build.absolute() if given.launcher else None) as scratch:
        csv = pathlib.Path(scratch) / "rows.csv"
        programs.say(f"Measuring, {how}")
        programs.run([*command, *options, "--csv", csv, *arguments.deadline(given),
                      *given.passed_on], "the measurement failed")
        rows = results.read(csv)
        if given.rows:
            results.write_text(given.rows, csv.read_text(encoding="utf-8"))
    length = int(rows[0]["length"])
    k = max(1, min(length, int(length * given.density + 0.5)))
    latency = float(given.latency or LATENCY)
    table = summed_up(rows, k, not mpi, given.rate, latency)
    title = f"{rows[0]['ranks']} ranks, n = {length:,}, {tables.all_k(table)}"
    network = given.rate and f"links of {arguments.rate_text(given.rate)}, {latency:g} us a message"
    title += f", {network}" if network else ""
    title += ", gradients given" if given.input else ""
    kind = "Measured" if mpi else "Forecast" if given.rate else "Without a network"
    show.report(given, table, title, "Time and words of an iteration",
                f"{kind}: {title}; {how}, on {programs.machine()}. Medians.", table=tables.comparison(table, in_turns=not mpi)
                + tables.answer(table, given.step_ms, kind_of_times(given, network, how)))
