# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`automatic` beside fixed schemes, on a grid of ranks, lengths, links and densities.

Measures with real MPI on the emulated cluster (network) and, without links, over shared memory. At
each of the 180 points one program calls by turns: automatic, automatic(sums=rounded), MPI's own
allreduce, the dense rings, ok_topk, and every scheme whose prediction is within a factor of the best.
Then it prints what that says and draws two pictures: a map of who wins where, and predicted against
measured times. The points come in an order in which any first 60 or more cover all ranks, lengths,
links and densities evenly. What is in grid.csv is not measured again: the same command goes on where
an earlier one ended. Links need root and iproute2.
"""

import itertools
import math
import pathlib
import statistics
import tempfile
import time

from . import arguments, network, pictures, programs, results, tables

RANKS = (2, 4, 8)
LENGTHS = (1000, 10000, 100000, 1000000, 14000000)
RATES = (*network.RATES, "shared")
DENSITIES = (0.001, 0.01, 0.05)
PARTS = ("measure", "show")
AUTOMATIC, ROUNDED, MPI = "automatic", "automatic(sums=rounded)", "dense"
NEAR = 1.15  # times the best: as good as it
COLUMNS = ("ranks", "length", "rate", "density", "scheme", "chosen", "rounded", "predicted", "seconds", "mean_seconds",
           "least_seconds", "calls", "words", "measuring_seconds", "making_seconds", "trial_calls", "trial_seconds",
           "switches", "tried")
# Families of schemes: name, colour, colour of text on it. A scheme is of the first one whose name it begins with.
FAMILIES = {"ok_topk": ("Ok-Topk", "#d55e00", "white"), "paper_ok_topk": ("Ok-Topk as published", "#e69f00", "black"),
            "topk_dsa": ("TopkDSA", "#56b4e9", "black"), "topk_a": ("TopkA", "#0072b2", "white"),
            "gtopk": ("gTopk", "#009e73", "white"), "gaussian_k": ("Gaussiank", "#cc79a7", "black")}
OWN_DENSE = ("dense of the library", "#bbbbbb", "black")
MPI_DENSE = ("dense of MPI", "#555555", "white")


def add_options(parser):
    """The options of `grid`."""
    parser.add_argument("--part", choices=PARTS, help="only this part; show: only the figures and the pictures")
    parser.add_argument("--points", type=arguments.whole, metavar="N", help="only the first N points of the order "
                        "(default: all 180)")
    parser.add_argument("--minutes", type=arguments.positive, metavar="M", help="begin no point after so many minutes")
    parser.add_argument("--seconds", type=arguments.positive, default=15.0, metavar="S",
                        help="for the calls of a point; slow schemes have few calls, and a point may take longer")
    parser.add_argument("--within", type=arguments.positive, default=3.0, metavar="F",
                        help="measure fixed schemes whose prediction is at most F times the best one")
    parser.add_argument("--rate", type=lambda text: text.split(","), default=list(RATES), metavar="LIST",
                        help=f"only links of these rates, of {', '.join(RATES)}")
    parser.add_argument("--results", type=pathlib.Path, metavar="DIR", help="folder of grid.csv (default: grid/ below "
                        "--build)")
    parser.add_argument("--pictures", type=pathlib.Path, metavar="DIR", help="folder of grid_map.png and "
                        "grid_scatter.png (default: as --results)")
    parser.add_argument("--bench", type=arguments.program, metavar="PATH",
                        help="the program automatic_bench (default: built below --build)")
    arguments.add(parser, "--ranks", "--length", "--deadline", "--build", build=programs.builds())
    arguments.add_yes(parser)


# --- what is to be measured, and what was ------------------------------------------------------------


def launches():
    """Ranks, rate and points (length, density) of each launch: every length once, in an order that spreads. A third of
    the launches has every pair of ranks and rate; densities change from each of these to the next."""
    for turn in range(len(DENSITIES)):
        for number in range(len(RANKS) * len(RATES)):  # no common divisor, so all pairs come
            ranks, rate = number % len(RANKS), number % len(RATES)
            yield RANKS[ranks], RATES[rate], [(length, DENSITIES[(turn + place + ranks + rate) % len(DENSITIES)])
                                              for place, length in enumerate(LENGTHS)]


def all_points():
    """All points in their order: ranks, length, rate, density."""
    return [(ranks, length, rate, density) for ranks, rate, points in launches() for length, density in points]


def point_of(row):
    """The point that a row was measured at."""
    return int(row["ranks"]), int(row["length"]), row["rate"], float(row["density"])


def complete(rows):
    """The rows of each point that has been measured to its end."""
    points = {}
    for row in rows:
        points.setdefault(point_of(row), {})[row["scheme"]] = row
    return {point: schemes for point, schemes in points.items() if {AUTOMATIC, ROUNDED, MPI} <= set(schemes)}


def kept(given):
    """The rows of points that were measured to their end."""
    path = given.results / "grid.csv"
    return [row for of in complete(results.read(path) if path.exists() else []).values() for row in of.values()]


def missing(given, rows):
    """The launches that are left, each with the points that it has to measure."""
    done, wanted = complete(rows), set(all_points()[:given.points])
    for ranks, rate, points in launches():
        left = [(length, density) for length, density in points
                if (ranks, length, rate, density) in wanted - set(done) and rate in given.rate
                and ranks in (given.ranks or ranks,) and length in (given.length or length,)]
        if left:
            yield ranks, rate, left


def on_shared_memory(given, ranks, options, scratch):
    """The rows of one launch without links."""
    path = pathlib.Path(scratch) / "rows.csv"
    launcher = network.launcher_of("open_mpi", given.bench)
    alone = ["env", "OMP_NUM_THREADS=1", "OMP_PROC_BIND=false", "OPENBLAS_NUM_THREADS=1"]
    programs.run(programs.on_one_machine([*alone, launcher, "-n", ranks, "--bind-to", "none", given.bench, *options,
                                          "--csv", path]),
                 "measuring over shared memory failed", "Measuring over shared memory")
    return [{**row, "rate": "shared"} for row in results.read(path)]


def measure_launch(given, ranks, rate, points, seconds_left):
    """The rows of one launch."""
    options = ["--points", ",".join(f"{length}:{density:g}" for length, density in points), "--seconds", given.seconds,
               "--within", given.within, *arguments.deadline(given)]
    if seconds_left is not None:
        options += ["--last-start", max(0, round(seconds_left))]
    with tempfile.TemporaryDirectory(prefix="oktopk.", dir="/tmp") as scratch:
        if rate == "shared":
            return on_shared_memory(given, ranks, options, scratch)
        launcher = network.launcher_of("open_mpi", given.bench)
        status, rows = network.measure(rate, ranks, "open_mpi", launcher, 1, [f"the grid|{given.bench}|grid||"],
                                       options, scratch)
        if status != 0:
            programs.fail("measuring on the emulated cluster failed")
        return rows


def run_measure(given):
    """Measures the points that are missing, for as long as that may take."""
    end = time.monotonic() + 60 * given.minutes if given.minutes else None
    rows = kept(given)
    for ranks, rate, points in list(missing(given, rows)):
        left = end - time.monotonic() if end else None
        if left is not None and left <= 0:
            break
        programs.say(f"{len(complete(rows))} points are measured; now {ranks} ranks, "
                     f"{links(rate)}: n = {', '.join(f'{length:,}' for length, _ in points)}")
        new = [{name: row[name] for name in COLUMNS} for row in measure_launch(given, ranks, rate, points, left)]
        if not new and left is None:
            programs.fail("the program measured nothing")
        rows += new
        if rows:
            results.write(given.results / "grid.csv", rows)
    programs.say(f"{len(complete(rows))} of {len(all_points())} points are measured")


# --- figures -----------------------------------------------------------------------------------------


def links(rate):
    """A rate for people."""
    return "shared memory" if rate == "shared" else f"links of {arguments.rate_text(rate)}"


def family_of(scheme):
    """Name and colours of the family of a scheme."""
    if scheme == MPI:
        return MPI_DENSE
    return next((family for name, family in FAMILIES.items() if scheme.startswith(name)), OWN_DENSE)


class Point:
    """What was measured at one point. Of schemes that round, only automatic(sums=rounded) may be compared with them."""

    def __init__(self, point, schemes):
        self.ranks, self.length, self.rate, self.density = point
        self.rows = schemes
        self.times = {name: float(row["seconds"]) for name, row in schemes.items()}
        fixed = [name for name in schemes if name not in (AUTOMATIC, ROUNDED)]
        self.best = {ROUNDED: min(fixed, key=self.times.get),
                     AUTOMATIC: min((name for name in fixed if schemes[name]["rounded"] == "0"), key=self.times.get)}
        self.ring = min((name for name in fixed if name != MPI and tables.is_baseline(name)), key=self.times.get,
                        default=None)

    def over(self, name, base):
        """How many times as long as another scheme one takes; NaN without that scheme."""
        return self.times[name] / self.times[base] if base else math.nan

    def over_best(self, name):
        """How many times as long as the best fixed scheme `automatic` takes, of those that it may choose."""
        return self.over(name, self.best[name])

    def beats_links(self, name):
        """Whether a scheme took less time than its words take at the links' rate: short calls between others pass at
        once, since an emulated link that was idle owes some 70 kB."""
        return (self.rate != "shared" and
                32 * float(self.rows[name]["words"]) > arguments.bits_per_second(self.rate) * self.times[name])

    def construction(self):
        """Seconds for measuring the machine and making the object."""
        row = self.rows[AUTOMATIC]
        return float(row["measuring_seconds"]) + float(row["making_seconds"])

    def text(self):
        """A few words."""
        return f"{self.ranks} ranks, n = {self.length:,}, {links(self.rate)}, density {100 * self.density:g} %"


def error_of(row):
    """How far the prediction of a row is off, as a share of what was measured; None without a prediction."""
    predicted, seconds = float(row["predicted"]), float(row["seconds"])
    return abs(predicted - seconds) / seconds if predicted > 0 else None


def points_of(rows):
    """All points, in the order of the grid."""
    order = {point: place for place, point in enumerate(all_points())}
    return [Point(point, of) for point, of in sorted(complete(rows).items(),
                                                     key=lambda each: order.get(each[0], len(order)))]


def figures(points):
    """Of both kinds of `automatic` by name: share of points near the best fixed scheme, the worst ratios to it, to
    MPI's allreduce and to the best dense allreduce of the library, each with its point, and switches; for each point
    that is far above one of the latter two, whether that one beats the links."""
    found = {}
    for name in (AUTOMATIC, ROUNDED):
        worst = {what: max(((ratio(each), each) for each in points if not math.isnan(ratio(each))),
                           key=lambda pair: pair[0], default=(math.nan, None))
                 for what, ratio in (("best", lambda each: each.over_best(name)),
                                     ("mpi", lambda each: each.over(name, MPI)),
                                     ("ring", lambda each: each.over(name, each.ring)))}
        errors = [error for each in points if (error := error_of(each.rows[name])) is not None]
        found[name] = {"near": statistics.fmean(each.over_best(name) <= NEAR for each in points), "worst": worst,
                       "error": statistics.median(errors) if errors else math.nan,
                       "switches": sum(int(each.rows[name]["switches"]) for each in points),
                       "above": {what: [each.beats_links(base(each)) for each in points
                                        if each.over(name, base(each)) > NEAR]
                                 for what, base in (("mpi", lambda _: MPI), ("ring", lambda each: each.ring))}}
    return found


def summary(points):
    """The figures as text."""
    lines = [f"{len(points)} of {len(all_points())} points."]
    for name, of in figures(points).items():
        lines.append(f"\n{name}: within {NEAR} of the best fixed scheme on {100 * of['near']:.1f} % of the points.")
        for what, text in (("best", "the best fixed scheme"), ("mpi", "MPI's dense allreduce"),
                           ("ring", "our best dense allreduce")):
            ratio, where = of["worst"][what]
            if where is not None:
                far = of["above"].get(what)
                above = "" if far is None else f"; above {NEAR} at {len(far)} points"
                above += f", at {sum(far)} of them it is faster than the links' rate allows" if far else ""
                lines.append(f"  worst: {ratio:.2f} times as long as {text} ({where.text()}){above}")
        lines.append(f"  median error of its prediction: {100 * of['error']:.1f} %; switches after the trials: "
                     f"{of['switches']}")
    errors = [error for each in points for name, row in each.rows.items() if name not in (AUTOMATIC, ROUNDED)
              and (error := error_of(row)) is not None]
    if errors:
        lines.append(f"\nPredictions of {len(errors)} fixed schemes: median error "
                     f"{100 * statistics.median(errors):.1f} %.")
    for ranks, of in itertools.groupby(sorted(points, key=lambda each: each.ranks), key=lambda each: each.ranks):
        seconds = [each.construction() for each in of]
        lines.append(f"Construction with {ranks} ranks: {statistics.median(seconds):.2f} s in the median, "
                     f"{max(seconds):.2f} s at most.")
    return "\n".join(lines)


def table(points):
    """A line for each point."""
    lines = []
    for each in sorted(points, key=lambda one: (one.ranks, RATES.index(one.rate), one.length, one.density)):
        row = each.rows[AUTOMATIC]
        lines.append([
            f"{each.ranks}, {'shared' if each.rate == 'shared' else arguments.rate_text(each.rate)}",
            f"{each.length:,}", f"{100 * each.density:g}", row["chosen"] or "on trial",
            tables.milliseconds(each.times[AUTOMATIC]), tables.milliseconds(float(row["predicted"])),
            each.best[AUTOMATIC], f"{each.over_best(AUTOMATIC):.2f}", f"{each.over(AUTOMATIC, MPI):.3f}",
            f"{each.over(AUTOMATIC, each.ring):.3f}", f"{each.over_best(ROUNDED):.2f}", row["calls"]])
    heading = ["ranks, links", "n", "k, %", "automatic chose", "ms", "predicted", "best fixed", "over it", "over MPI",
               "over ring", "rounded over its best", "calls"]
    return tables.aligned(heading, lines)


# --- pictures ----------------------------------------------------------------------------------------


def length_text(length):
    """A length in a few characters."""
    power = math.floor(math.log10(length))
    digits = f"{length / 10 ** power:g}"
    return (f"{digits}\u00b7" if digits != "1" else "") + f"$10^{power}$"


def cell_text(value):
    """How many times as fast, in three digits."""
    return f"{value:.{max(0, 1 - math.floor(math.log10(value)))}f}" if value < 100 else f"{value:.0f}"


def draw_map(points, path, note):
    """A panel for each number of ranks and rate; in it a cell for each length and density."""
    from matplotlib import patches

    title = "The fastest scheme that rounds nothing, by ranks, links, length and density"
    figure, axes = pictures.figure_of(5.6, title, note, bottom=0.62, nrows=len(RANKS), ncols=len(RATES), sharex=True,
                                      sharey=True, squeeze=False)
    at = {(each.ranks, each.rate, each.length, each.density): each for each in points}
    families = {}
    for (row, ranks), (column, rate) in itertools.product(enumerate(RANKS), enumerate(RATES)):
        panel = axes[row][column]
        for (x, length), (y, density) in itertools.product(enumerate(LENGTHS), enumerate(DENSITIES)):
            each = at.get((ranks, rate, length, density))
            if each is None:
                continue
            name, color, ink = family_of(each.best[AUTOMATIC])
            families[name] = color
            panel.add_patch(patches.Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=color, edgecolor="white"))
            late = each.over_best(AUTOMATIC) > NEAR
            panel.text(x, y, cell_text(1 / each.over(AUTOMATIC, MPI)) + "*" * late, ha="center", va="center",
                       color=ink, fontsize=7, fontweight="bold" if late else "normal")
        panel.set(xlim=(-0.5, len(LENGTHS) - 0.5), ylim=(-0.5, len(DENSITIES) - 0.5))
        panel.set_xticks(range(len(LENGTHS)), list(map(length_text, LENGTHS)), fontsize=8)
        panel.set_yticks(range(len(DENSITIES)), [f"{100 * density:g} %" for density in DENSITIES], fontsize=9)
        panel.tick_params(length=0)
        if row == 0:
            panel.set_title("shared memory" if rate == "shared" else arguments.rate_text(rate), fontsize=10.5)
        if column == 0:
            panel.set_ylabel(f"{ranks} ranks\ndensity")
        if row == len(RANKS) - 1:
            panel.set_xlabel("length")
    handles = [patches.Patch(color=color, label=name) for name, color in sorted(families.items())]
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=2 * pictures.DPI)


def draw_scatter(points, path, note):
    """Predicted against measured seconds of all fixed schemes, and of what `automatic` chose."""
    figure, panel = pictures.figure_of(5.6, "Predicted and measured time of a call", note, bottom=0.62)
    groups = {}
    for each in points:
        for name, row in each.rows.items():
            if name != ROUNDED and float(row["predicted"]) > 0:
                family = ("chosen by automatic", "black") if name == AUTOMATIC else family_of(name)[:2]
                groups.setdefault(family, []).append((1e3 * float(row["seconds"]), 1e3 * float(row["predicted"])))
    for (name, color), places in sorted(groups.items()):
        is_automatic = color == "black"
        panel.scatter(*zip(*places), s=24 if is_automatic else 9, label=name, alpha=0.9 if is_automatic else 0.45,
                      facecolors="none" if is_automatic else color, edgecolors=color if is_automatic else "none",
                      linewidths=0.9, zorder=4 if is_automatic else 3)
    ends = [value for places in groups.values() for place in places for value in place]
    low, high = min(ends) / 1.5, max(ends) * 1.5
    for factor, style in ((1, "-"), (1.25, ":"), (0.75, ":")):
        panel.plot((low, high), (factor * low, factor * high), color="black", linewidth=0.8, linestyle=style)
    for axis in (panel.xaxis, panel.yaxis):
        pictures.logarithmic(axis, low, high)
        pictures.grid(axis)
    panel.set(xlabel="measured ms of a call, median (logarithmic axes)", ylabel="predicted ms")
    figure.legend(*panel.get_legend_handles_labels(), loc="lower center", ncols=4, frameon=False)
    figure.savefig(path, dpi=2 * pictures.DPI)


def show(given):
    """Prints the figures and the table, and draws the pictures."""
    points = points_of(kept(given))
    if not points:
        programs.fail(f"no point has been measured yet: {given.results / 'grid.csv'}")
    print(f"{summary(points)}\n\n{table(points)}")
    print(tables.note(
        "ms: the median of the calls of automatic after its trials, of the slowest rank. Best fixed: of the schemes "
        "that round nothing; over it, over MPI, over ring: how many times as long automatic takes as that scheme, as "
        "MPI's dense allreduce and as our best dense allreduce. Rounded over its best: the same of "
        "automatic(sums=rounded) and all schemes."))
    if pictures.missing():
        return
    how = "Measured: MPI ranks on 2 cores, links emulated, medians of calls by turns."
    paths = [given.pictures / f"grid_{name}.png" for name in ("map", "scatter")]
    draw_map(points, paths[0], f"{how} Colour: the family of the fastest fixed scheme. Number: how many times as fast "
             f"automatic is as MPI's dense allreduce; *: it takes more than {NEAR} times as long as the fastest.")
    draw_scatter(points, paths[1], f"{how} One mark for each fixed scheme at each point, and one for what automatic "
                 "chose. Dotted: 25 % off.")
    if given.part != "show":
        programs.wrote(given.results / "grid.csv", *paths)


def run(given):
    """Measures what is missing, prints the figures and draws the pictures."""
    given.results = given.results or given.build / "grid"
    given.pictures = given.pictures or given.results
    for each in set(given.rate) - set(RATES):
        programs.fail(f'--rate: there is no "{each}"; there are {", ".join(RATES)}')
    for folder in (given.results, given.pictures):
        folder.mkdir(parents=True, exist_ok=True)
    if given.part != "show":
        if any(rate != "shared" for _, rate, _ in missing(given, kept(given))):
            network.check(max(RANKS))
        given.bench = given.bench or programs.benchmark(given, "automatic_bench", mpi=True)
        programs.note_crowding(max(RANKS))
        run_measure(given)
    if given.part != "measure":
        show(given)
