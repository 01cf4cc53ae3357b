# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of results: one function for each kind of CSV file.

Matplotlib is needed only where one is drawn.
"""

import importlib.util

from . import programs
from .results import column, grouped, median
from .tables import is_floor, kind_of

COLORS = ("#4c72b0", "#55a868", "#dd8452", "#8172b3", "#937860", "#c44e52")


def figure_of(**options):
    """A new figure and its axes, drawn without a display."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot.subplots(**options)


def stacked_bars(bars, title, xlabel="seconds per iteration, median"):
    """`bars` maps a scheme to (selection, whole, label), times in seconds; longest first."""
    names = sorted(bars, key=lambda name: bars[name][1], reverse=True)
    selection = [bars[name][0] for name in names]
    rest = [bars[name][1] - bars[name][0] for name in names]
    figure, axes = figure_of(figsize=(8, 1.2 + 0.45 * len(names)))
    axes.barh(names, selection, color=COLORS[0], label="selection")
    axes.barh(names, rest, left=selection, color=COLORS[2], label="communication and the rest")
    for place, name in enumerate(names):
        axes.annotate(" " + bars[name][2], (bars[name][1], place), va="center", fontsize=9)
    axes.margins(x=0.35)
    axes.set_xlim(left=0)
    axes.set_xlabel(xlabel)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    return figure


def steps(rows, title):
    """The medians of oktopk_bench's rows."""
    bars = {}
    for name, of in grouped(rows).items():
        seconds = median(of, "seconds")
        bars[name] = (median(of, "select_seconds"), seconds, f"{seconds:.3g} s")
    return stacked_bars(bars, title)


def comparison(rows, title):
    """A bar per scheme with time and words, as in the paper's Figures 8 and 10."""
    bars = {}
    for row in rows:
        seconds = float(row["seconds"])
        words = f"{float(row['words_sent']):,.0f}{'*' * is_floor(row)} words"
        bars[row["algorithm"]] = (float(row["selection_seconds"]), seconds,
                                  f"{1e3 * seconds:.3g} ms, {words}")
    return stacked_bars(bars, title, "seconds of a rank per iteration, median    "
                        "(* the least that any scheme sends)")


def scaling(rows, title):
    """Time over the number of ranks, one line per scheme, both axes logarithmic."""
    figure, axes = figure_of(figsize=(7, 4.5))
    markers = "os^vD*XPp"
    for number, (name, of) in enumerate(grouped(rows).items()):
        points = sorted(zip(column(of, "ranks"), column(of, "milliseconds")))
        axes.plot(*zip(*points), marker=markers[number % len(markers)], label=name)
    ranks = sorted(set(column(rows, "ranks")))
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(ranks, [f"{each:.0f}" for each in ranks])
    axes.minorticks_off()
    axes.set_xlabel("ranks")
    axes.set_ylabel("simulated communication per iteration, ms")
    axes.set_title(title, fontsize=10)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", frameon=False)
    return figure


def accuracy(rows, title):
    """Entries selected over the iterations, locally and in the result: the paper's Figure 6."""
    figure, (local, result) = figure_of(ncols=2, figsize=(10, 4), sharey=True)
    for color, (name, of) in zip(COLORS, grouped(rows).items()):
        when, style = column(of, "iteration"), {"color": color, "linewidth": 1, "label": name}
        local.plot(when, column(of, "local_mean"), **style)
        local.fill_between(when, column(of, "local_min"), column(of, "local_max"), color=color,
                           alpha=0.2, linewidth=0)
        result.plot(when, column(of, "global"), **style)
    for axes, what in ((local, "local selections (mean of the ranks, band from least to most)"),
                       (result, "entries of the result")):
        axes.axhline(float(rows[0]["k"]), color="black", linewidth=0.8, linestyle="--", label="k")
        axes.set_yscale("log")
        axes.set_title(what, fontsize=9)
        axes.set_xlabel("iteration")
        axes.spines[["top", "right"]].set_visible(False)
    local.set_ylabel("entries")
    figure.legend(*result.get_legend_handles_labels(), loc="upper center", bbox_to_anchor=(0.5, 0),
                  ncols=2, frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=10)
    return figure


def missing():
    """The packages that a picture needs and that are not there."""
    return [] if importlib.util.find_spec("matplotlib") else ["python3-matplotlib"]


def draw(rows, picture, title):
    """Draws rows."""
    kind = kind_of(rows)
    if kind is None:
        programs.fail("there is no picture of such a file")
    if missing():
        programs.fail("--plot needs matplotlib: install python3-matplotlib (Debian, Ubuntu: "
                      "apt-get install python3-matplotlib), or do without a picture")
    globals()[kind](rows, title).savefig(picture, dpi=140, bbox_inches="tight")
