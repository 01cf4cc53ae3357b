# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Training while the rate of the links changes: `automatic` beside fixed schemes.

Trains Fashion-MNIST (train_fashion_mnist) and the networks of train_torch on the emulated cluster.
After a third of the iterations all links go from 1 Gbit/s to 100 Mbit/s, after two thirds back.
  train  every workload with every scheme and seed; a row for each iteration goes to --csv
  show   time against the best fixed scheme, accuracy against ok_topk, switches; and the picture
What is in the CSV file is not trained again: the same command goes on where an earlier one ended.
Builds what it needs below --build, and installs what is missing on Debian and Ubuntu; on a terminal
it asks first, unless --yes says so. Needs root and iproute2.
"""

import os
import pathlib
import statistics
import tempfile
import threading
import time

from . import arguments, network, pictures, programs, results, selection_accuracy, tables, torch
from .peers import WORKLOADS as OF_TORCH

RATES = ("1gbit", "100mbit", "1gbit")  # of the three thirds
AUTOMATIC = "automatic(recheck=8)"     # 40 iterations a third: looks at the clocks five times in each
SCHEMES = [AUTOMATIC, "ok_topk", "ok_topk(format=packed)", "ring_pipelined"]
WORKLOADS = ["fashion_mnist", *torch.WORKLOADS]
ITERATIONS = 120
FASHION = {"batch": 128, "density": 0.01}
IMAGES = 60000  # of Fashion-MNIST, for training
PARTS = ("train", "show")
GOAL, MOST_SWITCHES = 1.05, 4
PATIENCE = 0.02  # seconds between two looks at the program's progress


def add_options(parser):
    """The options of `changing`."""
    parser.add_argument("--part", choices=PARTS, help="only this part")
    parser.add_argument("--workload", type=arguments.names, metavar="LIST", default=", ".join(WORKLOADS),
                        help="what is trained")
    parser.add_argument("--seeds", type=arguments.whole, metavar="S", default=1, help="trainings of each scheme")
    parser.add_argument("--iterations", type=arguments.whole, metavar="N", default=ITERATIONS,
                        help="of each training but that of Fashion-MNIST, which takes an epoch")
    arguments.add(parser, "--ranks", "--algorithm", "--csv", "--plot", "--build", ranks=4,
                  algorithm=", ".join(SCHEMES), plot=False, build=programs.builds())
    arguments.add_yes(parser)
    parser.add_argument("--text", metavar="FILE", help="a text for lstm and bert (default: the King James Bible)")
    parser.add_argument("--fashion-program", type=arguments.program, metavar="PATH",
                        help="train_fashion_mnist (default: built below --build)")
    parser.add_argument("--torch-program", type=arguments.program, metavar="PATH",
                        help="train_torch (default: built below --build)")


# --- what is to be trained, and how ------------------------------------------------------------------


def kept(given):
    """The rows that are there already."""
    return results.read(given.csv) if given.csv.exists() else []


def missing(given, rows):
    """Workload, scheme and seed of each training that is not among the rows."""
    known = {(row["workload"], row["scheme"], int(row["seed"])) for row in rows}
    return [(workload, scheme, seed) for seed in range(1, given.seeds + 1) for workload in given.workload
            for scheme in given.algorithm if (workload, scheme, seed) not in known]


def iterations_of(workload, given):
    """The iterations of a training."""
    return IMAGES // given.ranks // FASHION["batch"] if workload == "fashion_mnist" else given.iterations


def options_of(workload, seed, given):
    """The options of the program that trains a workload."""
    if workload == "fashion_mnist":
        return ["--epochs", 1, "--batch", FASHION["batch"], "--density", FASHION["density"], "--seed", seed]
    how = OF_TORCH[workload]
    count = iterations_of(workload, given)
    options = ["--workload", workload, "--iterations", count, "--every", count, "--seed", seed]
    for name, option in {"size": "size", "batch": "batch", "density": "density", "words": "words",
                         "clip": "clip-norm"}.items():
        options += [f"--{option}", how[name]] if name in how else []
    return options + ([] if workload == "vgg16" else ["--text", given.text])


def turns(iterations):
    """Iterations after which the links get another rate, and which."""
    return [(iterations * third // 3, RATES[third]) for third in (1, 2)]


def rows_in(path):
    """The iterations that a program has told of in its file; none where there is no file yet."""
    try:
        return max(0, path.read_bytes().count(b"\n") - 1)
    except OSError:
        return 0


class Links(threading.Thread):
    """Watches the progress of a program, and tells the emulated cluster the rate of its links when it is time."""

    def __init__(self, course, scratch, plan):
        super().__init__(daemon=True)
        self.course, self.scratch, self.plan = course, scratch, plan
        self.changes = []  # the first iteration that had the rate to its end, and the rate
        self.ended = threading.Event()

    def wait_until(self, true):
        """Waits; whether it has become true before the program ended."""
        while not true():
            if self.ended.wait(PATIENCE):
                return False
        return True

    def run(self):
        for after, rate in self.plan:
            if not self.wait_until(lambda after=after: rows_in(self.course) >= after):
                return
            wanted = self.scratch / "rate.part"
            wanted.write_text(rate + "\n", encoding="utf-8")
            wanted.rename(self.scratch / "rate")
            now = self.scratch / "rate.now"
            if not self.wait_until(lambda rate=rate, now=now: now.exists() and now.read_text("utf-8").strip() == rate):
                return
            self.changes.append((rows_in(self.course) + 1, rate))


def rate_at(iteration, changes):
    """The rate of the links in an iteration; that in which they change counts as already changed."""
    return ([RATES[0]] + [rate for since, rate in changes if since <= iteration])[-1]


def rows_of(job, course, changes, last):
    """The rows of a training. What runs is told in full where it changes; accuracy and loss of the test stand in the
    last row."""
    workload, scheme, seed = job
    rows, before = [], None
    for row in course:
        runs = row["runs"].partition(": ")[0]
        rows.append({"workload": workload, "scheme": scheme, "seed": seed, "iteration": row["iteration"],
                     "seconds": row["seconds"], "loss": row["loss"], "words": row["words"],
                     "rate": rate_at(int(row["iteration"]), changes), "runs": runs, "switches": row["switches"],
                     "test_loss": "", "accuracy": "", "explain": row["runs"] if runs != before else ""})
        before = runs
    rows[-1].update(test_loss=last.get("test_loss", ""), accuracy=last["accuracy"])
    return rows


def train_one(given, job, program, folder):
    """The rows of one training on the emulated cluster."""
    workload, scheme, seed = job
    scratch = pathlib.Path(tempfile.mkdtemp(dir=folder))
    course = scratch / "course"
    iterations = iterations_of(workload, given)
    links = Links(course, scratch, turns(iterations))
    links.start()
    options = [*options_of(workload, seed, given), "--course", course]
    status, last = network.measure(RATES[0], given.ranks, "open_mpi", network.launcher_of("open_mpi", program), 1,
                                   [network.launch_of(scheme, "open_mpi", program)], options, scratch)
    links.ended.set()
    links.join()
    told = results.read(course) if course.exists() else []
    if status != 0 or len(told) != iterations or len(links.changes) != len(links.plan):
        programs.fail(f"the training of {workload} with {scheme} failed after {len(told)} of {iterations} iterations "
                      f"and {len(links.changes)} changes of the links")
    return rows_of(job, told, links.changes, last[-1])


def program_for(given, workload):
    """The program that trains a workload, which is built unless it is given."""
    given.program = given.fashion_program if workload == "fashion_mnist" else given.torch_program
    given.workload_of_program, given.rate, given.images, given.data = workload, RATES[0], None, None
    if workload == "fashion_mnist":
        return selection_accuracy.built(given)
    several, given.workload = given.workload, workload
    try:
        return torch.built(given)
    finally:
        given.workload = several


def train(given):
    """Trains what is missing."""
    jobs = missing(given, kept(given))
    if not jobs:
        return
    network.check(given.ranks)
    of = {workload: program_for(given, workload) for workload in given.workload}
    programs.note_crowding(given.ranks)
    os.environ["FOLLOW_RATE"] = "1"
    with tempfile.TemporaryDirectory(prefix="oktopk.", dir="/tmp") as scratch:
        if set(given.workload) & {"lstm", "bert"}:
            given.text = torch.text_of(given, scratch)
        for number, job in enumerate(jobs, 1):
            programs.say(f"Training {job[0]} with {job[1]}, seed {job[2]} ({number} of {len(jobs)})")
            began = time.monotonic()
            rows = train_one(given, job, of[job[0]], scratch)
            results.write(given.csv, kept(given) + rows)
            programs.say(f"{len(rows)} iterations, {time.monotonic() - began:.0f} s in all")


# --- table and picture -------------------------------------------------------------------------------


def trainings(rows):
    """The rows of each training of a workload, by scheme: a list of one for each seed."""
    by_scheme = {}
    for scheme, own in results.grouped(rows, "scheme").items():
        by_scheme[scheme] = list(results.grouped(own, "seed").values())
    return by_scheme


def seconds_of(runs):
    """Seconds of a whole training: the mean of the seeds. The first iteration, which makes room, is not counted."""
    return statistics.fmean(sum(results.column(run[1:], "seconds")) for run in runs)


def step_at(runs, rate):
    """The median of the seconds of a step at a rate, of all seeds; None where no iteration had it."""
    steps = [float(row["seconds"]) for run in runs for row in run[1:] if row["rate"] == rate]
    return statistics.median(steps) if steps else None


def accuracy_of(runs):
    """Share of the test data that is right in the end: the mean of the seeds."""
    return statistics.fmean(float(run[-1]["accuracy"]) for run in runs)


def switches_of(runs):
    """The most switches of a training."""
    return max(int(run[-1]["switches"]) for run in runs)


def is_automatic(scheme):
    """Whether a scheme chooses."""
    return scheme.startswith("automatic")


def table(of):
    """A line for each scheme of a workload."""
    lines = []
    for scheme, runs in of.items():
        steps = [step_at(runs, rate) for rate in RATES[:2]]
        lines.append([tables.marked(scheme), f"{seconds_of(runs):.1f}",
                      *("-" if step is None else f"{1e3 * step:.0f}" for step in steps),
                      f"{100 * accuracy_of(runs):.2f}",
                      f"{statistics.fmean(results.mean(run, 'words') for run in runs):,.0f}",
                      str(switches_of(runs)) if is_automatic(scheme) else "-"])
    heading = ["scheme", "seconds", *(f"ms/step at {arguments.rate_text(rate)}" for rate in RATES[:2]), "right, %",
               "words/step", "switches"]
    return tables.aligned(heading, lines)


def verdict(of):
    """A sentence on what chooses beside the best fixed scheme and ok_topk; empty where one of these is missing."""
    ours = next(filter(is_automatic, of), None)
    fixed = {scheme: seconds_of(runs) for scheme, runs in of.items() if not is_automatic(scheme)}
    if ours is None or not fixed:
        return ""
    best = min(fixed, key=fixed.get)
    ratio, switches = seconds_of(of[ours]) / fixed[best], switches_of(of[ours])
    text = (f"{ours}: {ratio:.3f} of the time of {best}, the best fixed scheme ({met(ratio <= GOAL)}: at most "
            f"{GOAL}); {switches} switches ({met(switches <= MOST_SWITCHES)}: at most {MOST_SWITCHES})")
    if "ok_topk" in of:
        points = 100 * (accuracy_of(of[ours]) - accuracy_of(of["ok_topk"]))
        text += f"; {points:+.2f} points of accuracy against ok_topk"
    return text + "."


def met(reached):
    """Of a goal."""
    return "reached" if reached else "missed"


def choices(run):
    """Iterations at which what chooses has decided, and for which scheme: at first, and at each switch."""
    found = []
    for row in run:
        if not found or int(row["switches"]) > found[-1][2]:
            found.append((int(row["iteration"]), row["runs"], int(row["switches"])))
    if len(run) > 20:  # the first iterations are trials
        first = run[20]
        found[0] = (1, first["runs"], 0) if int(first["switches"]) == 0 else found[0]
    return [(at, runs) for at, runs, _ in found]


def draw(all_of, path, note):
    """Seconds of a step against the iteration: a panel for each workload, with the first seed of each scheme."""
    figure, axes = pictures.figure_of(2.4 * len(all_of), "Training while the rate of the links changes", note,
                                      bottom=0.6, nrows=len(all_of), squeeze=False)
    for (panel,), (workload, of) in zip(axes, all_of.items()):
        for scheme, runs in of.items():
            color, _, line = ("black", "", "-") if is_automatic(scheme) else pictures.style_of(scheme)
            line = "--" if "format=" in scheme else line
            at = results.column(runs[0][1:], "iteration")
            panel.plot(at, results.column(runs[0][1:], "seconds"), color=color, linestyle=line, label=scheme,
                       linewidth=1.6 if is_automatic(scheme) else 1.0)
            if is_automatic(scheme):
                rates = [row["rate"] for row in runs[0]]
                for i in range(1, len(rates)):
                    if rates[i] != rates[i - 1]:
                        panel.axvline(i + 1, color="#888888", linewidth=0.8, linestyle=(0, (4, 3)))
                        panel.text(i + 1, 1.0, " " + arguments.rate_text(rates[i]), fontsize=8.5, va="bottom",
                                   transform=panel.get_xaxis_transform())
                for place, (since, runs_then) in enumerate(choices(runs[0])):
                    panel.text(since, 0.03 + 0.09 * (place % 5), f"| {runs_then}", fontsize=8.5,
                               transform=panel.get_xaxis_transform())
        panel.set(yscale="log", ylabel="seconds a step", xlabel="iteration")
        panel.set_title(workload, fontsize=10.5, loc="left", pad=14)
        pictures.grid(panel.yaxis)
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=2 * pictures.DPI)


def show(given):
    """Prints the tables and draws the picture."""
    rows = kept(given)
    all_of = {workload: trainings(own) for workload, own in results.grouped(rows, "workload").items()
              if workload in given.workload} if rows else {}
    for workload, of in all_of.items():
        seeds = max(map(len, of.values()))
        print(f"\n{workload}, {given.ranks} ranks, {seeds} seed{'s' * (seeds > 1)}; links of "
              f"{', '.join(map(arguments.rate_text, RATES))}:\n\n{table(of)}\n\n{verdict(of)}")
    if given.plot and all_of:
        draw(all_of, given.plot, f"Measured: {given.ranks} ranks on an emulated cluster, the first seed. Time of each "
             "step, computation and selection included. Where automatic has decided for a scheme, its name begins.")


def run(given):
    """Trains what is missing, prints the tables and draws the picture."""
    for each in set(given.workload) - set(WORKLOADS):
        programs.fail(f'there is no workload "{each}"; there are {", ".join(WORKLOADS)}')
    if given.iterations < 3:
        programs.fail("--iterations must be at least 3, one for each rate")
    programs.check_schemes(given.algorithm)
    programs.set_outputs(given, "changing", "changing")
    parts = [given.part] if given.part else PARTS
    if "train" in parts:
        train(given)
    show(given)
    if parts != ["show"]:
        programs.wrote(given.csv, given.plot)
