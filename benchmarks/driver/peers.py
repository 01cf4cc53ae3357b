# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PyTorch's own hooks beside oktopk_torch, each at its best learning rate: loss, words and time.

Trains with DistributedDataParallel: without a hook, with the hooks that PyTorch ships
(fp16_compress_hook, PowerSGD) and with oktopk_torch, the paper's rivals included, in one program
(benchmarks/torch/peers.py):
  loss   trainings between processes of this machine: loss against iterations and words, which do
         not depend on the machine's load. Each scheme with learning rates of a grid until the best
         one lies between two others, then with more seeds; those that miss the loss go on longer
  time   seconds and words a step on the emulated cluster, by turns, at each rate of the links
  check  whole trainings on the emulated cluster, for the product of iterations and time of a step
Then it prints the tables and draws the picture from the files in --results. What is in these files
is not measured again: the same command goes on where an earlier one ended. Needs root and iproute2.
"""

import itertools
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from . import arguments, network, pictures, programs, results, tables
from .torch import text_of

# Trainings that miss the loss of dense sums go on for as many iterations again.
ITERATIONS, EVERY, SEEDS, LONGER = 240, 20, 3, 480
GRID = [float(f"{digit}e{power}") for power in range(-5, 4) for digit in (1, 3)]
# Sizes for which all trainings take about an hour on two cores; `rates` is where the grid begins.
WORKLOADS = {
    "mlp": {"size": 1, "batch": 64, "tested": 1000, "density": 0.01, "rates": (0.01, 0.03, 0.1)},
    "vgg16": {"size": 0.25, "batch": 16, "tested": 1000, "density": 0.02, "rates": (0.01, 0.03, 0.1)},
    "bert": {"size": 0.25, "batch": 4, "tested": 3, "words": 2000, "density": 0.01, "rates": (3e-4, 1e-3, 3e-3)},
    "lstm": {"size": 0.25, "batch": 8, "tested": 60, "words": 2000, "clip": 0.5, "density": 0.02, "rates": (3, 10, 30)},
    "lstm_adamw": {"size": 0.25, "batch": 8, "tested": 60, "words": 2000, "density": 0.02, "rates": (1e-3, 3e-3, 0.01)},
    # Causal transformers of 0.2 and 1.1 million values, with the betas, the decay and the warm-up of language models.
    "mini": {"width": 64, "layers": 3, "context": 32, "batch": 8, "tested": 64, "words": 1000, "density": 0.01,
             "betas": (0.9, 0.95), "decay": 0.1, "warm": 20, "rates": (1e-3, 3e-3, 0.01)},
    "gpt": {"width": 128, "layers": 4, "context": 64, "batch": 4, "tested": 48, "words": 2000, "density": 0.01,
            "betas": (0.9, 0.95), "decay": 0.1, "warm": 20, "rates": (1e-3, 3e-3, 0.01)},
}
# The same with a rate that falls to a tenth by a cosine: trainings as people make them. Their own number of iterations.
LONG = {"mini_long": ("mini", 3000, 100), "gpt_long": ("gpt", 1500, 50)}
WORKLOADS.update({name: {**WORKLOADS[of], "cosine": True, "iterations": iterations, "every": every}
                  for name, (of, iterations, every) in LONG.items()})
PEERS = ["ddp", *(f"powersgd(rank={rank})" for rank in (1, 2, 4)), "fp16"]
EAGER = [f"powersgd(rank={rank}, start=2)" for rank in (1, 2, 4)]
OURS = ["dense", "ring_chunked(codec=block_float)", "ok_topk", "ok_topk(format=packed)",
        "ok_topk(format=packed, values=bfloat16)", "ok_topk(density=0.04, format=packed, values=bfloat16)"]
# What the paper compares Ok-Topk with.
PAPER = ["topk_a", "topk_dsa", "gtopk", "gaussian_k", "topk_a(format=packed)", "gtopk(format=packed)"]
WITH_ADAMW = ("bert", "lstm_adamw", "mini", "gpt", *LONG)
# Averages of directions, for AdamW: adam(dense) is the same optimizer over dense sums.
DIRECTIONS = ["adam(dense)", "adam(ok_topk)", "adam(ok_topk(fill=true))",
              "adam(ok_topk(density=0.04, format=packed, values=fixed2))"]
SCHEMES = [*PEERS[:-1], *OURS, *EAGER, PEERS[-1], *PAPER]  # the order of training
AS = {"dense": "ddp", "topk_dsa": "topk_a"}  # the same sums, but for the order of the terms
CHECKED = ["ddp", "powersgd(rank=2)", "ok_topk(format=packed, values=bfloat16)"]
CHECKS = [("100mbit", "vgg16"), *(("1gbit", workload) for workload in WORKLOADS)]
LINK_STEPS = {"100mbit": 5, "1gbit": 15, "10gbit": 15}
PARTS = ("loss", "time", "check", "show")


def add_options(parser):
    """The options of `peers`."""
    parser.add_argument("--part", choices=PARTS, help="only this part; show: only the tables and the picture")
    parser.add_argument("--workload", type=arguments.names, metavar="LIST", default="mlp, vgg16, bert, lstm",
                        help="what is trained")
    parser.add_argument("--results", type=pathlib.Path, metavar="DIR", help="folder of the files peers_PART.csv "
                        "(default: peers/ below --build)")
    arguments.add(parser, "--ranks", "--algorithm", "--rounds", "--plot", "--build", ranks=4, rounds=3,
                  algorithm=", ".join(SCHEMES), plot=False, build=programs.builds())
    parser.add_argument("--rate", choices=network.RATES, help="draw only loss against time behind links of this rate")
    arguments.add_yes(parser)
    parser.add_argument("--text", metavar="FILE", help="a text for lstm and bert (default: the King James Bible)")


def kept(given, part):
    """The rows of a part that are there already."""
    path = given.results / f"peers_{part}.csv"
    return results.read(path) if path.exists() else []


def summed_by(scheme):
    """The scheme of the catalogue: of adam(NAME), which averages directions, what is in the brackets."""
    return scheme[len("adam("):-1] if scheme.startswith("adam(") else scheme


def density_of(scheme, workload):
    """The density of a scheme that selects; else 0."""
    return WORKLOADS[workload]["density"] if programs.kind_of_scheme(summed_by(scheme)) == "sparse" else 0


def iterations_of(workload):
    return WORKLOADS[workload].get("iterations", ITERATIONS)


def every_of(workload):
    return WORKLOADS[workload].get("every", EVERY)


def evaluations(workload):
    return iterations_of(workload) // every_of(workload)


def trained_as(scheme):
    """The scheme whose trainings count for this one: packing alone changes no bit."""
    plain = scheme.replace("(format=packed)", "")
    return AS.get(plain, plain)


def job_of(workload, scheme, rate, seed, kind="train", known=0):
    """A job for peers.py; the rows of the first iterations are `known` and not written again."""
    own = {name: value for name, value in WORKLOADS[workload].items() if name != "rates"}
    return {**own, "kind": kind, "workload": workload, "scheme": scheme, "density": density_of(scheme, workload),
            "learning_rate": rate, "seed": seed, "iterations": LONGER if known else iterations_of(workload),
            "every": every_of(workload),
            "known": known}


# --- what is to be measured, and what was ------------------------------------------------------------


def trainings(rows):
    """The rows of each training, by workload, scheme, learning rate and seed."""
    runs = {}
    for row in rows:
        runs.setdefault((row["workload"], row["scheme"], float(row["learning_rate"]), int(row["seed"])), []).append(row)
    return runs


def smooth(run, what="test_loss"):
    """A figure at each evaluation: the mean of the last three, for single ones vary from evaluation to evaluation."""
    values = results.column(run, what)
    return [statistics.fmean(values[max(0, i - 2):i + 1]) for i in range(len(values))]


def score(run):
    """How good a training is: its loss at the end of what all have; infinite where it diverged."""
    last = smooth(run)[:evaluations(run[0]["workload"])][-1]
    return last if math.isfinite(last) else math.inf


def seeds_of(runs, workload, scheme):
    """The trainings of a scheme at its best learning rate, in the order of the seeds, and this rate."""
    best, _ = best_rate(runs, workload, scheme)
    return [run for (where, name, rate, _), run in sorted(runs.items())
            if (where, name, rate) == (workload, scheme, best)], best


def target_of(runs, workload):
    """The least loss that dense sums without a hook reach in two thirds of their iterations: the mean of the seeds."""
    dense, _ = seeds_of(runs, workload, "ddp")
    means = map(statistics.fmean, zip(*map(smooth, dense)))
    return min(itertools.islice(means, evaluations(workload) * 2 // 3)) if len(dense) == SEEDS else -math.inf


def reached(run, target):
    """The iterations of a training until a loss, between evaluations in proportion; None where it misses it."""
    last, above = None, None
    for at, loss in zip(results.column(run, "iteration"), smooth(run)):
        if loss <= target:
            return at if last is None else at - (at - last) * (target - loss) / (above - loss)
        last, above = at, loss
    return None


def best_rate(runs, workload, scheme):
    """The best learning rate that was tried with the first seed, and all that were."""
    tried = {rate: score(run) for (of, name, rate, seed), run in runs.items()
             if (of, name, seed) == (workload, scheme, 1)}
    return min(tried, key=tried.get, default=None), tried


def next_trainings(runs, workload, scheme):
    """What is to be trained next: the grid, its next rate where the best is its last, more seeds of the best, and on
    from where a training ended that misses the target."""
    best, tried = best_rate(runs, workload, scheme)
    wanted = [(rate, 1) for rate in WORKLOADS[workload]["rates"] if rate not in tried]
    if not wanted:
        at = GRID.index(best)
        wanted = [(rate, 1) for rate in (GRID[at - 1], GRID[at + 1]) if rate not in tried]
    if not wanted:
        wanted = [(best, seed) for seed in range(2, SEEDS + 1) if (workload, scheme, best, seed) not in runs]
    if not wanted:
        target = target_of(runs, workload)
        ends = {seed: runs[workload, scheme, best, seed] for seed in range(1, SEEDS + 1)}
        return [job_of(workload, scheme, best, seed, known=ITERATIONS) for seed, run in ends.items()
                if workload not in LONG and len(run) == evaluations(workload) and math.isfinite(target)
                and reached(run, target) is None]
    return [job_of(workload, scheme, rate, seed) for rate, seed in wanted]


def python():
    """The Python that has torch, or the one of the system."""
    has = subprocess.run([sys.executable, "-c", "import torch"], capture_output=True, check=False).returncode == 0
    return sys.executable if has else "/usr/bin/python3"


def program(given, scratch, jobs, **options):
    """The command of peers.py for jobs, but for the CSV file."""
    path = pathlib.Path(scratch) / "jobs"
    path.write_text("".join(json.dumps(job) + "\n" for job in jobs), encoding="utf-8")
    store = pathlib.Path(tempfile.mkdtemp(dir=scratch)) / "store"
    options = {"jobs": path, "store": store, "text": given.text, **options}
    return [programs.BENCHMARKS / "torch" / "peers.py",
            *itertools.chain(*((f"--{name}", value) for name, value in options.items()))]


def run_loss(given, scratch):
    """Trains between processes of this machine, until there is nothing left to train."""
    csv = given.results / "peers_loss.csv"
    while True:
        runs = trainings(kept(given, "loss"))
        jobs = [job for workload in given.workload for scheme in given.algorithm if trained_as(scheme) == scheme
                for job in next_trainings(runs, workload, scheme)]
        if not jobs:
            return
        jobs = [job for job in jobs if job["workload"] == jobs[0]["workload"]]
        programs.say(f"Training {jobs[0]['workload']} {len(jobs)} times")
        command = [*network.IN_NAMESPACES, "sh", "-c", 'ip link set lo up && exec "$@"', "sh", python(),
                   *program(given, scratch, jobs, ranks=given.ranks, csv=csv)]
        if subprocess.run(list(map(str, command)), stdout=sys.stderr.fileno(), check=False).returncode != 0:
            programs.fail("the training failed")


def on_cluster(given, scratch, rate, jobs):
    """The rows of jobs that run on the emulated cluster."""
    folder = tempfile.mkdtemp(dir=scratch)
    options = program(given, scratch, jobs, interface="cluster")
    status, rows = network.measure(rate, given.ranks, "open_mpi", network.need("mpirun.openmpi", "openmpi-bin"), 1,
                                   [f"peers|{python()}|peers||"], options, folder)
    if status != 0:
        programs.fail("measuring on the emulated cluster failed")
    return [{name: value for name, value in row.items() if name != "algorithm"} for row in rows]


def run_time(given, scratch):
    """Measures seconds and words a step on the emulated cluster."""
    for rate, workload in itertools.product(network.RATES, given.workload):
        rows = kept(given, "time")
        known = {row["scheme"] for row in rows if (row["rate"], row["workload"]) == (rate, workload)}
        # Eager PowerSGD is the same step, and has begun when the measured steps do.
        names = [each.replace(")", ", start=2)") if each in PEERS else each
                 for each in given.algorithm if each not in EAGER]
        missing = [each for each in names if each not in known]
        if not missing:
            continue
        # Beside what was measured earlier: ddp once more shows whether the machine is as fast as then.
        names = missing if "ddp" in missing else ["ddp", *missing]
        schemes = [(each, density_of(each, workload)) for each in names]
        job = {**job_of(workload, "ddp", WORKLOADS[workload]["rates"][0], 1, "time"), "schemes": schemes,
               "rounds": given.rounds, "ahead": 4, "steps": LINK_STEPS[rate]}
        programs.say(f"Measuring {workload} at {arguments.rate_text(rate)}")
        results.write(given.results / "peers_time.csv", rows + on_cluster(given, scratch, rate, [job]))


def run_check(given, scratch):
    """Trains on the emulated cluster, in a few cases."""
    runs = trainings(kept(given, "loss"))
    for rate, workload in CHECKS:
        rows = kept(given, "check")
        if workload not in given.workload or any((row["rate"], row["workload"]) == (rate, workload) for row in rows):
            continue
        best = {scheme: best_rate(runs, workload, scheme)[0] for scheme in CHECKED if scheme in given.algorithm}
        jobs = [job_of(workload, scheme, best_one, 1) for scheme, best_one in best.items() if best_one is not None]
        if not jobs:
            continue
        programs.say(f"Training {workload} at {arguments.rate_text(rate)}")
        results.write(given.results / "peers_check.csv", rows + on_cluster(given, scratch, rate, jobs))


# --- tables and picture ------------------------------------------------------------------------------


class Course:
    """How a scheme learns a workload: its trainings at its best learning rate, one for each seed."""

    def __init__(self, workload, scheme, runs, times):
        self.borrowed = trained_as(scheme) != scheme
        self.runs, self.rate = seeds_of(runs, workload, trained_as(scheme))
        compressed = scheme.replace(")", ", start=2)") if scheme in PEERS else scheme
        self.steps = {rate: [[row for row in rows if (row["workload"], row["scheme"]) == (workload, name)]
                             for name in ("ddp", compressed)] for rate, rows in results.grouped(times, "rate").items()}
        # PowerSGD begins after so many steps without compression.
        self.start = iterations_of(workload) // 10 if compressed != scheme else 2 * (scheme in EAGER)

    def measured(self, rate):
        """Whether the steps that it takes were measured behind such links."""
        return all(self.steps.get(rate, [()]))

    def cost(self, iterations, rate, what):
        """Seconds ("step_seconds") or words ("words") of the first iterations, by the figures of single steps."""
        dense, own = self.steps[rate]
        early = min(self.start, iterations)
        return early * results.median(dense, what) * bool(early) + (iterations - early) * results.median(own, what)

    def words(self):
        """Words a step of its trainings, as a text; of one with the loss of another, those of measured steps."""
        if not self.borrowed:
            return f"{statistics.fmean(float(run[-1]['words']) / int(run[-1]['iteration']) for run in self.runs):,.0f}"
        found = [results.median(rows, "words") for _, rows in self.steps.values() if rows]
        return f"{found[0]:,.0f}" if found else "-"

    def curve(self, what="test_loss"):
        """Iterations, and of a figure there the mean over the seeds and the standard deviation."""
        values = list(zip(*(smooth(run, what) for run in self.runs)))[:evaluations(self.runs[0][0]["workload"])]
        return ([int(row["iteration"]) for row in self.runs[0]][:len(values)], list(map(statistics.fmean, values)),
                list(map(deviation, values)))

    def reached(self, target):
        """The iterations of each training that comes to a loss."""
        return [at for at in (reached(run, target) for run in self.runs) if at is not None]


def deviation(values):
    """The standard deviation of a sample; 0 of one value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def courses(given, workload):
    """The courses of the schemes whose trainings are complete."""
    runs, times = trainings(kept(given, "loss")), kept(given, "time")
    both = [(scheme, Course(workload, scheme, runs, times)) for scheme in given.algorithm]
    return {scheme: of for scheme, of in both if len(of.runs) == SEEDS}


def two_tables(of, target):
    """A line for each scheme: what it learns with how many words; and in what time. Then who is first at each rate."""
    rates = [rate for rate in network.RATES if of["ddp"].measured(rate)]
    learned, lasted, first = [], [], {rate: {} for rate in rates}
    for scheme, course in of.items():
        reached, ends = course.reached(target), list(map(score, course.runs))
        iterations = statistics.fmean(reached) if reached else math.nan
        learned.append([
            tables.marked(scheme), f"{course.rate:g}", f"{statistics.fmean(ends):.3f} \u00b1 {deviation(ends):.3f}",
            f"{100 * course.curve('accuracy')[1][-1]:.1f}", course.words(),
            (f"{iterations:.0f} \u00b1 {deviation(reached):.0f}" if reached else "never")
            + f" ({len(reached)} of {len(ends)})" * (0 < len(reached) < len(ends))])
        lasted.append([tables.marked(scheme)])
        for rate in rates:
            if not course.measured(rate):
                lasted[-1] += ["-", "-"]
                continue
            seconds = course.cost(iterations, rate, "step_seconds") if reached else math.inf
            lasted[-1] += [f"{1e3 * results.median(course.steps[rate][1], 'step_seconds'):.0f}",
                           f"{seconds:.1f}" if reached else "-"]
            if len(reached) == len(ends):
                first[rate][scheme] = seconds
    heading = [text for rate in rates for text in (f"{arguments.rate_text(rate)}: ms/step", f"s to {target:.3f}")]
    parts = [tables.aligned(["scheme", "learning rate", "loss at the end", "right, %", "words/step",
                             f"steps to {target:.3f}"], learned)]
    if rates:
        parts += [tables.aligned(["scheme", *heading], lasted), "\n".join(map(leader, first, first.values()))]
    return "\n\n".join(parts)


def leader(rate, times):
    """A sentence on the fastest of oktopk_torch, the paper's schemes included, and of the peers."""
    ours, peer = (min((each for each in times if each in group), key=times.get, default=None)
                  for group in (OURS + PAPER + DIRECTIONS, PEERS + EAGER))
    if not ours or not peer:
        return ""
    return (f"{arguments.rate_text(rate)}: {ours} {times[ours]:.1f} s; the fastest peer {peer} {times[peer]:.1f} s, "
            f"{times[peer] / times[ours]:.2f} times as long.")


def checks(given):
    """Whole trainings on the emulated cluster beside what loss and time foretell."""
    lines = []
    for (workload, scheme, _, _), run in trainings(kept(given, "check")).items():
        for rate, rows in results.grouped(run, "rate").items():
            course = courses(given, workload).get(scheme)
            if course is None or not course.measured(rate):
                continue
            foretold = course.cost(int(rows[-1]["iteration"]), rate, "step_seconds")
            seconds, same = float(rows[-1]["seconds"]), [row["test_loss"] for row in rows] == [
                row["test_loss"] for row in course.runs[0][:len(rows)]]
            lines.append([f"{workload}, {scheme}", arguments.rate_text(rate), f"{foretold:.1f}", f"{seconds:.1f}",
                          f"{seconds / foretold:.2f}", "the same" if same else rows[-1]["test_loss"]])
    heading = ["training", "links", "foretold, s", "measured, s", "ratio", "losses"]
    return tables.aligned(heading, lines) if lines else ""


SHOWN = {"ddp": "#444444", "fp16": "#999999", "powersgd(rank=1)": "#009e73", "powersgd(rank=4)": "#0072b2",
         "powersgd(rank=4, start=2)": "#56b4e9", "ring_chunked(codec=block_float)": "#cc79a7", "ok_topk": "#e69f00",
         "ok_topk(format=packed, values=bfloat16)": "#d55e00",
         "ok_topk(density=0.04, format=packed, values=bfloat16)": "#7f3b08", "topk_a": "#999933", "gtopk": "#882255",
         "adam(dense)": "#000000", "adam(ok_topk)": "#e31a1c", "adam(ok_topk(fill=true))": "#6a3d9a",
         "adam(ok_topk(density=0.04, format=packed, values=fixed2))": "#b15928"}


def draw(all_courses, path, note, only=None):
    """Loss against time at two rates and against words: a row of panels for each workload, means and deviations. With
    `only` loss against time at this rate, a panel for each workload."""
    columns = [(only, "step_seconds", f"seconds at {arguments.rate_text(only)}")] if only else [
        ("100mbit", "step_seconds", "seconds at 100 Mbit/s"), ("1gbit", "step_seconds", "seconds at 1 Gbit/s"),
        ("100mbit", "words", "million words of a rank")]
    rows, across = (1, len(all_courses)) if only else (len(all_courses), len(columns))
    names = [each for each in SHOWN if any(each in of for of, _ in all_courses.values())]
    figure, axes = pictures.figure_of(2.5 * rows, "Test loss: PyTorch's own hooks and oktopk_torch", note,
                                      bottom=0.18 + 0.22 * math.ceil(len(names) / 2), nrows=rows, ncols=across,
                                      squeeze=False)
    for panels, (workload, (of, target)) in zip(axes.reshape(len(all_courses), -1), all_courses.items()):
        for panel, (rate, what, along) in zip(panels, columns):
            for scheme in (each for each in names if each in of and of[each].measured(rate)):
                at, means, spread = of[scheme].curve()
                places = [of[scheme].cost(each, rate, what) / (1e6 if what == "words" else 1) for each in at]
                panel.plot(places, means, color=SHOWN[scheme], linewidth=1.4, label=scheme)
                low, high = ([a + sign * b for a, b in zip(means, spread)] for sign in (-1, 1))
                panel.fill_between(places, low, high, color=SHOWN[scheme], alpha=0.18, linewidth=0)
            panel.axhline(target, color="black", linewidth=0.8, linestyle=(0, (4, 3)))
            settled = [value for each in of.values() for value in each.curve()[1][3:] if value < 2 * target]
            along_time = {"xlim": (0, None)} if only else {"xscale": "log"}
            panel.set(ylim=(0.97 * min(settled), 1.05 * max(settled)), **along_time)
            pictures.named(panel, workload, along)
    lines = {line.get_label(): line for panel in axes.flat for line in panel.lines if line.get_label() in SHOWN}
    figure.legend(lines.values(), lines, loc="lower center", ncols=2, frameon=False)
    figure.savefig(path, dpi=2 * pictures.DPI)
    if only and path.suffix == ".png":  # for the first page: 64 colours take a third of the bytes
        from PIL import Image  # comes with matplotlib

        Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)


def show(given):
    """Prints the tables and draws the picture."""
    runs = trainings(kept(given, "loss"))
    all_courses = {workload: (of, target_of(runs, workload)) for workload in given.workload
                   if "ddp" in (of := courses(given, workload))}
    for workload, (of, target) in all_courses.items():
        run = of["ddp"].runs[0]
        print(f"\n{workload}, {int(run[0]['parameters']):,} parameters, {run[0]['ranks']} ranks:\n")
        print(two_tables(of, target))
    print(f"\n{checks(given)}")
    if given.plot is not None and all_courses and kept(given, "time") and not pictures.missing():
        path = given.plot or given.results / "peers.png"
        draw(all_courses, path, f"Measured: {given.ranks} ranks, each scheme at its best "
             f"learning rate, mean and standard deviation of {SEEDS} seeds. Time: iterations times the measured time "
             "of a step on an emulated cluster. ddp: no hook. Dashed: the least loss of ddp in two thirds of its "
             "iterations.", given.rate)
        if given.part != "show":  # as run.py show
            programs.wrote(path)


def built(given):
    """The environment in which Python finds oktopk_torch, and the engine, which is built."""
    packages = ["openmpi-bin", "iproute2", "dataset-fashion-mnist", "python3-torch",
                "libopenblas0-pthread",  # the reference BLAS is ten times as slow
                *([] if given.text else ["bible-kjv", "bible-kjv-text"])]
    off = (f"-DOKTOPK_ENABLE_{what}=OFF" for what in ("MPI", "TORCH", "EXAMPLES", "BENCHMARKS"))
    folder = programs.built(given, "engine", "oktopk_engine", packages, *programs.RELEASE, "-DOKTOPK_ENABLE_ENGINE=ON", *off)
    return {"PYTHONPATH": str(programs.ROOT / "python"), "OKTOPK_ENGINE": str(folder / "src" / "liboktopk_engine.so")}


def run(given):
    """Measures what is missing, prints the tables and draws the picture."""
    given.results = given.results or given.build / "peers"
    given.results.mkdir(parents=True, exist_ok=True)
    for each in set(given.workload) - set(WORKLOADS):
        programs.fail(f'there is no workload "{each}"; there are {", ".join(WORKLOADS)}')
    programs.check_schemes(summed_by(each) for each in given.algorithm if each not in PEERS + EAGER)
    for workload in set(given.workload) - set(WITH_ADAMW):
        if strange := [each for each in given.algorithm if summed_by(each) != each]:
            programs.fail(f"{workload} is not trained with AdamW, for which {strange[0]} is")
    parts = [given.part] if given.part else PARTS
    if parts != ["show"]:
        network.check(given.ranks)
        os.environ.update(built(given), OMP_NUM_THREADS="1")
        with tempfile.TemporaryDirectory(prefix="oktopk.", dir="/tmp") as scratch:
            given.text = text_of(given, scratch)
            for part in parts:
                {"loss": run_loss, "time": run_time, "check": run_check}.get(part, lambda *_: None)(given, scratch)
    if "show" in parts:
        show(given)
