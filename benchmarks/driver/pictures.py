# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of results: one function for each kind of CSV file.

All have one style, made for a width of 800 pixels. Matplotlib is needed only where one is drawn.
"""

import importlib.util
import math
import re
import textwrap

from . import programs
from .arguments import rate_text
from .results import column, grouped, median, most
from .tables import SPEEDS, best_dense, by_rate, is_baseline, is_floor, is_ours, is_sparse, kind_of

# The colour of a scheme is the same in every picture: that of the first name in this table that its
# own name begins with. Okabe and Ito's colours, which the colour-blind can tell apart; dense
# allreduces are grey. Marker and style of a line differ as well.
SCHEMES = {
    "ok_topk": ("#d55e00", "o", "-"),
    "paper_ok_topk": ("#e69f00", "s", "-"),
    "gtopk": ("#009e73", "^", "-"),
    "topk_dsa": ("#56b4e9", "v", "-"),
    "topk_a": ("#0072b2", "D", "-"),
    "gaussian_k": ("#cc79a7", "P", "-"),
    "dense_bfloat16": ("#999999", "X", ":"),
    "dense_rabenseifner": ("#777777", "D", (0, (4, 3))),
    "dense": ("#444444", "s", "-"),
    "gloo/": ("#666666", "d", ":"),
    "ring_pipelined": ("#888888", "<", "--"),
    "ring_chunked": ("#777777", ">", "-."),
    "ring": ("#aaaaaa", "h", "--"),
    "halving_doubling": ("#999999", "p", "-."),
    "recursive_doubling": ("#bbbbbb", "*", "--"),
}
OTHER = ("#555555", ".", "-")
PIXELS = 800
DPI = 100  # of the sizes below; a picture is saved with twice as many
THIN_SPACE = "\u2009"
UNITS = [("s", 1), ("ms", 1e3), ("\u00b5s", 1e6)]
TEXT = {"font.family": "DejaVu Sans", "font.size": 10.5, "axes.labelsize": 10.5,
        "xtick.labelsize": 10, "ytick.labelsize": 10.5, "legend.fontsize": 10,
        "axes.spines.top": False, "axes.spines.right": False, "axes.axisbelow": True,
        "grid.color": "#dddddd", "grid.linewidth": 0.8, "axes.edgecolor": "#888888"}


def style_of(scheme):
    """Colour, marker and line style of a scheme."""
    return next((style for name, style in SCHEMES.items() if scheme.startswith(name)), OTHER)


def number(value):
    """A number with three digits or, if it has more before the point, all of those, in groups."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:,.{max(0, digits)}f}".replace(",", THIN_SPACE)


def factor(value):
    """How many times as fast, with a digit more where it is small."""
    return f"{value:.{1 if value >= 10 else 2}f}{THIN_SPACE}\u00d7"


def unit_for(seconds):
    """The one unit of a picture of these times: the largest in which the least is 1 or more."""
    return next((unit for unit in UNITS if min(seconds) * unit[1] >= 1), UNITS[-1])


def figure_of(height, title, note, bottom=0, **options):
    """A new figure and its axes, with its title and what was measured how, without a display.
    All in inches; `bottom` is kept free."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams.update(TEXT)
    note = re.sub(r"(?<=\d)[ ,](?=\d{3}(\D|$))", THIN_SPACE, note)
    lines = textwrap.wrap(note, 108)
    top = 0.42 * bool(title) + 0.19 * len(lines) + 0.08
    whole = height + top + bottom
    figure, axes = pyplot.subplots(figsize=(PIXELS / DPI, whole), dpi=DPI, layout="constrained",
                                   **options)
    figure.get_layout_engine().set(rect=(0, bottom / whole, 1, height / whole), w_pad=0.1,
                                   h_pad=0.06)
    at = 1 - 0.1 / whole
    figure.text(0.0125, at, title, fontsize=13, fontweight="bold", va="top")
    figure.text(0.0125, at - 0.32 * bool(title) / whole, "\n".join(lines), fontsize=9.5,
                color="#444444", va="top", linespacing=1.25)
    return figure, axes


def grid(axis):
    """A grid of an axis, with weaker lines for the minor ticks of a logarithmic one."""
    axis.grid(True, which="major")
    axis.grid(True, which="minor", alpha=0.45, linewidth=0.5)


def logarithmic(axis, low, high):
    """Makes an axis logarithmic, with plain numbers on it: also at 2 and 5 where it is short."""
    from matplotlib import ticker

    axis.axes.set(**{f"{axis.axis_name}scale": "log", f"{axis.axis_name}lim": (low, high)})
    steps = (1, 2, 5) if high / low < 2000 else (1,)
    axis.set_major_locator(ticker.LogLocator(subs=steps))
    axis.set_minor_locator(ticker.LogLocator(subs=range(1, 10)))
    axis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace(",", THIN_SPACE))
    axis.set_minor_formatter(ticker.NullFormatter())


def named(axes, title, along):
    """What the axes show against what, with a grid."""
    axes.set_title(title, fontsize=10.5)
    axes.set_xlabel(along)
    grid(axes.xaxis)
    grid(axes.yaxis)


def bars(axes, places, times, labels, unit, room):
    """A bar from zero on for each scheme in its place, and behind it a text; `room` in lengths of the longest bar."""
    axes.barh(list(places.values()), [times[name] for name in places], height=0.66,
              color=[style_of(name)[0] for name in places])
    for name, place in places.items():
        axes.annotate(f" {labels[name]}", (times[name], place), va="center",
                      fontweight="bold" if is_ours(name) else "normal")
    longest = max(times[name] for name in places)
    axes.set_xlim(0, longest * room)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.10g}".replace(",", THIN_SPACE))
    axes.set_xticks(ticks_up_to(longest))
    axes.tick_params(axis="y", length=0)
    grid(axes.xaxis)
    axes.set_xlabel(f"{unit} per iteration, median", loc="left")


def comparison(rows, title, note):
    """A bar per scheme with time and words, as in the paper's Figures 8 and 10, the fastest on top."""
    rows = sorted(rows, key=lambda row: float(row["seconds"]), reverse=True)
    names = [row["algorithm"] for row in rows]
    unit, scale = unit_for(column(rows, "seconds"))
    times = {name: scale * value for name, value in zip(names, column(rows, "seconds"))}
    labels = {}
    for name, row in zip(names, rows):
        against_dense = f"   {factor(times['dense'] / times[name])}" if "dense" in times else ""
        words = f"{float(row['words_sent']):,.0f}".replace(",", THIN_SPACE)
        labels[name] = f"{number(times[name])}{THIN_SPACE}{unit}{against_dense}   {words} words{'*' * is_floor(row)}"
    floors = " * not counted: the least that any scheme sends." * any(map(is_floor, rows))
    against = " \u00d7: how many times as fast as dense." * ("dense" in times)
    figure, axes = figure_of(0.75 + 0.36 * len(names), title, note + against + floors)
    bars(axes, {name: place for place, name in enumerate(names)}, times, labels, unit, 1.9)
    axes.barh(range(len(names)), [scale * value for value in column(rows, "selection_seconds")], height=0.2,
              color="black", label="of which selection")
    axes.legend(loc="upper right", frameon=False)
    axes.set_yticks(range(len(names)), names)
    bold_names_of_ours(axes)
    return figure


def bold_names_of_ours(axes):
    """The names of Ok-Topk's bars in bold type."""
    for text in axes.get_yticklabels():
        text.set_fontweight("bold" if is_ours(text.get_text()) else "normal")


def steps(rows, title, note, shown=None):
    """The medians of oktopk_bench's rows: a panel for each rate of the links, a bar per scheme, from
    zero on. Of the schemes those `shown`, or all; where there are sparse ones, of the dense
    allreduces without a code only the best one of each rate and the MPI library's own choice."""
    wholes = {rate: {name: median(of, "seconds") for name, of in grouped(rows_of_rate).items()}
              for rate, rows_of_rate in by_rate(rows).items()}
    best = {rate: best_dense(times) for rate, times in wholes.items()}
    names = list(grouped(rows))
    if any(map(is_sparse, names)):
        names = [name for name in names if name in best.values() or name == "dense" or
                 not is_baseline(name) and (shown is None or name in shown)]
    rate, first = next(iter(wholes.items()))
    names.sort(key=lambda name: first.get(name, math.inf), reverse=True)
    title = title or headline(first, best[rate], rate)
    figure, all_axes = figure_of(0.85 + 0.42 * len(names), title, note, ncols=len(wholes),
                                 sharey=True, squeeze=False)
    for axes, (rate, whole) in zip(all_axes[0], wholes.items()):
        places = {name: place for place, name in enumerate(names) if name in whole}
        unit, scale = unit_for([whole[name] for name in places])
        labels = {}
        for name in places:
            labels[name] = f"{number(scale * whole[name])}{THIN_SPACE}{unit}"
            if best[rate]:
                labels[name] += ("   best dense" if name == best[rate]
                                 else f"   {factor(whole[best[rate]] / whole[name])}")
        bars(axes, places, {name: scale * value for name, value in whole.items()}, labels, unit,
             1.2 + 0.28 * len(wholes))
        axes.set_ylim(-0.6, len(names) - 0.4)
        if rate:
            axes.set_title(f"links of {rate_text(rate)}", fontsize=10.5, loc="left")
    all_axes[0][0].set_yticks(range(len(names)), list(map(label_of, names)))
    bold_names_of_ours(all_axes[0][0])
    return figure


def ticks_up_to(most_time):
    """A few round numbers from 0 to a time: behind it is room for labels."""
    from matplotlib import ticker

    return [tick for tick in ticker.MaxNLocator(3).tick_values(0, most_time) if tick <= most_time]


def label_of(scheme):
    """The name of a scheme, in short lines."""
    text = "dense (MPI's own choice)" if scheme == "dense" else scheme
    text = text.replace("gloo/", "gloo/\n" if len(text) > 26 else "gloo/")
    return "\n".join(textwrap.fill(line, 26, break_long_words=False) for line in text.split("\n"))


def headline(times, best, rate):
    """In a few words, what is fastest."""
    shown = [("ok_topk", "ok_topk")] + [(best, "best dense")] * (best != "dense")
    shown.append(("dense", "MPI's own choice"))
    parts = [f"{text} {number(1e3 * times[name])} ms" for name, text in shown if name in times]
    return (f"{rate_text(rate)}: " if rate else "") + (", ".join(parts) or "time of an iteration")


def scaling(rows, title, note):
    """Time and messages over the number of ranks, one line per scheme, all axes logarithmic."""
    figure, both = figure_of(4.6, title, note, ncols=2)
    ranks = sorted(set(column(rows, "ranks")))
    ends = {}
    variants = {}  # of each colour, one line style after the other
    for name in grouped(rows):
        variants.setdefault(style_of(name), []).append(name)
    for axes, figures, what in zip(both, ("milliseconds", "messages_sent_max"),
                                   ("ms per iteration", "messages of a rank")):
        values = column(rows, figures)
        axes.set_xscale("log", base=2)
        axes.set_xticks(ranks, [f"{each:.0f}" for each in ranks])
        axes.set_xticks([], minor=True)
        logarithmic(axes.yaxis, min(values) / 1.5, max(values) * 1.5)
        for name, of in grouped(rows).items():
            points = sorted(zip(column(of, "ranks"), column(of, figures)))
            color, marker, line = style_of(name)
            line = [line, "--", ":", "-."][variants[style_of(name)].index(name) % 4]
            label = textwrap.fill(name, 28, break_long_words=False)
            # Hollow markers and dashes: a line under another stays visible.
            hollow = line != "-"
            drawn, = axes.plot(*zip(*points), color=color, linestyle=line, marker=marker,
                               linewidth=3.2 if is_ours(name) else 1.6, markersize=9 if hollow else 6,
                               markerfacecolor="none" if hollow else color, zorder=4 if is_ours(name) else 3,
                               label=f"{label}  {number(points[-1][1])}{THIN_SPACE}ms")
            if axes is both[0]:
                ends[drawn] = points[-1][1]
        grid(axes.xaxis)
        grid(axes.yaxis)
        axes.set_xlabel("ranks")
        axes.set_title(what, fontsize=10)
    # In the order of the lines' ends.
    both[1].legend(handles=sorted(ends, key=ends.get, reverse=True), loc="center left", bbox_to_anchor=(1.01, 0.5),
                   frameon=False)
    return figure


def envelope(values, outermost, reach=3):
    """The outermost of each value and those beside it."""
    return [outermost(values[max(0, i - reach):i + reach + 1]) for i in range(len(values))]


def accuracy(rows, title, note):
    """Entries selected over the iterations, locally and in the result: the paper's Figure 6."""
    figure, (local, result) = figure_of(3.7, title, note, bottom=0.55, ncols=2, sharey=True)
    every_k = sorted({float(row["k"]) for row in rows})
    for name, of in grouped(rows).items():
        when, color = column(of, "iteration"), style_of(name)[0]
        style = {"color": color, "linewidth": 2.2 if name.startswith("ok_topk") else 1.3,
                 "label": name}
        local.plot(when, column(of, "local_mean"), **style)
        # What is 0 is off a logarithmic axis: the band ends at its lower edge.
        least = [max(1, each) for each in envelope(column(of, "local_min"), min)]
        local.fill_between(when, least, envelope(column(of, "local_max"), max), color=color,
                           alpha=0.22, linewidth=0)
        result.plot(when, column(of, "global"), **style)
    high = max(2 * every_k[-1], most(rows, "local_max", "global")) * 1.3
    for axes, what in ((local, "of a rank: mean, and band\nfrom least to most of the ranks"),
                       (result, "of the result")):
        for k in every_k:
            axes.axhline(k, color="black", linewidth=1.2, linestyle=(0, (4, 3)),
                         label=f"k = {number(k)}, which ok_topk selects exactly")
        logarithmic(axes.yaxis, 1, high)
        named(axes, what, "iteration")
        axes.xaxis.set_major_formatter(lambda value, _: number(value) if value else "0")
    local.set_ylabel("entries selected (logarithmic axis)")
    figure.legend(*result.get_legend_handles_labels(), loc="lower center", ncols=2,
                  frameon=False)
    return figure


def millions(rows, name):
    """Words in millions; a scheme that sends none has a word, for an axis that is logarithmic."""
    return [max(1, value) / 1e6 for value in column(rows, name)]


def training(rows, title, note):
    """Loss and accuracy against the words that a rank has sent so far: a mark for each epoch."""
    schemes = grouped(rows)
    lines_below = math.ceil(len(schemes) / 2)
    figure, (loss, accuracy) = figure_of(3.4, title, note, bottom=0.25 + 0.22 * lines_below, ncols=2)
    for place, (name, of) in enumerate(schemes.items()):
        color, marker, _ = list(SCHEMES.values())[place % len(SCHEMES)]
        words = millions(of, "words_so_far")
        style = {"color": color, "marker": marker, "markersize": 4.5, "linewidth": 1.3}
        loss.plot(words, column(of, "loss"), label=name, **style)
        accuracy.plot(words, [100 * value for value in column(of, "accuracy")], **style)
    words = millions(rows, "words_so_far")
    for axes, what in ((loss, "training loss"), (accuracy, "test accuracy, %")):
        logarithmic(axes.xaxis, min(words) / 1.3, max(words) * 1.3)
        named(axes, what, "million words sent by a rank (logarithmic axis)")
    figure.legend(*loss.get_legend_handles_labels(), loc="lower center", ncols=2, frameon=False)
    return figure


def parts_of_time(axes, schemes):
    """Bars of the seconds a step of each scheme: computation, waits, and what is hidden."""
    names = list(schemes)[::-1]
    last = {name: schemes[name][-1] for name in names}

    def seconds(part):
        return [float(last[name][part]) / float(last[name]["iteration"]) for name in names]

    compute, waits, hidden = map(seconds, ("compute_seconds", "wait_seconds", "hidden_seconds"))
    axes.barh(names, compute, height=0.6, color="#bbbbbb", label="computation")
    axes.barh(names, waits, height=0.6, left=compute, color="#d55e00", label="waiting")
    axes.barh(names, hidden, height=0.2, left=[a - b for a, b in zip(compute, hidden)],
              color="#0072b2", label="communication behind it")
    axes.set_yticks(range(len(names)), [str(len(names) - i) for i in range(len(names))])
    axes.set_title("seconds a step", fontsize=10.5)
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    grid(axes.xaxis)


def torch_training(rows, title, note):
    """Loss and accuracy against time and words (the paper's Figures 9, 11 and 13), the time of a
    step (8 to 12) and, where it was measured, xi (5)."""
    schemes = grouped(rows)
    has_xi = any(row["xi"] for row in rows)
    lines_below = math.ceil(len(schemes) / 2)
    figure, axes = figure_of(9.6 if has_xi else 6.6, title, note, bottom=0.25 + 0.22 * lines_below,
                             nrows=3 if has_xi else 2, ncols=2)
    (loss, accuracy), (words, times) = axes[:2]
    for place, (name, of) in enumerate(schemes.items()):
        marker = list(SCHEMES.values())[place % len(SCHEMES)][1]
        style = {"color": f"C{place}", "marker": marker, "markersize": 3.5, "linewidth": 1.3}
        seconds = column(of, "seconds")
        loss.plot(seconds, column(of, "test_loss"), label=f"{place + 1}  {name}", **style)
        accuracy.plot(seconds, [100 * value for value in column(of, "accuracy")], **style)
        words.plot(millions(of, "words"), column(of, "test_loss"), **style)
        if has_xi:
            measured = [row for row in of if row["xi"]]
            axes[2][0].plot(column(measured, "iteration"), column(measured, "xi"), **style)
            axes[2][1].plot(column(of, "iteration"), column(of, "selected"), **style)
    # What a scheme begins with, which may be huge, leaves no room for the rest.
    settled = [value for of in schemes.values() for value in column(of, "test_loss")[len(of) // 5:]]
    for each in (loss, words):
        each.set_ylim(0.9 * min(settled), 1.15 * max(settled))
    for each in (loss, accuracy, words):
        each.set_xscale("log")
    for each, what, along in ((loss, "test loss", "seconds of training"),
                              (accuracy, "test accuracy, %", "seconds of training"),
                              (words, "test loss", "million words sent by a rank")):
        named(each, what, along)
    parts_of_time(times, schemes)
    if has_xi:
        for each, what in zip(axes[2], ("xi (the paper's Assumption 1)", "entries of the update")):
            named(each, what, "iteration")
        axes[2][1].set_yscale("log")
    figure.legend(*loss.get_legend_handles_labels(), loc="lower center", ncols=2, frameon=False)
    return figure


def coding(rows, title, note):
    """Bits an entry, and entries a second, of each format: a mark for each input."""
    from matplotlib import ticker

    formats = list(grouped(rows, "format"))
    places = {name: len(formats) - 1 - place for place, name in enumerate(formats)}
    figure, (bits, speed) = figure_of(0.9 + 0.3 * len(formats), title, note, bottom=0.3, ncols=2,
                                      sharey=True)
    heights = [places[row["format"]] for row in rows]
    ours = [row["format"].startswith("packed") for row in rows]
    colors = ["#d55e00" if own else "#0072b2" for own in ours]
    bits.scatter(column(rows, "bits_per_entry"), heights, s=42, c=colors, alpha=0.75, linewidth=0)
    bits.set_xlim(0, 68)
    bits.set_xticks(range(0, 65, 8))
    bits.set_xlabel("bits an entry")
    for name, marker, face in (("encode", "o", "none"), ("decode", "D", None)):
        values = column(rows, f"{name}_per_second")
        offset = 0.16 if name == "encode" else -0.16
        speed.scatter([value / 1e6 for value in values], [y + offset for y in heights], s=30,
                      marker=marker, facecolors=face or colors, edgecolors=colors, alpha=0.75,
                      linewidth=1.2)
        speed.scatter([], [], s=30, marker=marker, facecolors=face or "#555555",
                      edgecolors="#555555", label=name)
    speeds = [value / 1e6 for name in SPEEDS for value in column(rows, name)]
    logarithmic(speed.xaxis, min(speeds) / 1.3, max(speeds) * 1.3)
    speed.xaxis.set_major_locator(ticker.LogLocator(subs=(1,)))
    speed.set_xlabel("million entries a second (logarithmic axis)")
    bits.set_yticks(list(places.values()), list(places))
    bits.set_ylim(-0.6, len(formats) - 0.4)
    for axes in (bits, speed):
        grid(axes.xaxis)
        axes.tick_params(axis="y", length=0)
        for place in range(0, len(formats), 2):
            axes.axhspan(place - 0.5, place + 0.5, color="#f3f3f3", zorder=0, linewidth=0)
    figure.legend(*speed.get_legend_handles_labels(), loc="lower right", ncols=2, frameon=False)
    return figure


def missing():
    """The packages that a picture needs and that are not there."""
    return [] if importlib.util.find_spec("matplotlib") else ["python3-matplotlib"]


def draw(rows, picture, title, note="", **options):
    """Draws rows. `title` says in plain words what is shown, `note` how and on what; `options` are
    those of the picture of their kind."""
    kind = kind_of(rows)
    if kind not in globals():
        programs.fail("there is no picture of such a file")
    if missing():
        programs.fail("--plot needs matplotlib: install python3-matplotlib (Debian, Ubuntu: "
                      "apt-get install python3-matplotlib), or do without a picture")
    globals()[kind](rows, title, note, **options).savefig(picture, dpi=2 * DPI)
