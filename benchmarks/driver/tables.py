# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of results, in Markdown: one function for each kind of CSV file."""

import textwrap
from statistics import fmean

from .arguments import bits_per_second
from .results import column, grouped, mean, median, most


def aligned(heading, rows):
    """A table whose first column is aligned to the left and the others to the right."""
    widths = [max(4, *map(len, cells)) for cells in zip(heading, *rows)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [[first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:]))]
             for first, *rest in (heading, rule, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def note(*paragraphs):
    """What stands below a table."""
    return "\n\n" + "\n".join(textwrap.fill(text, 100) for text in paragraphs if text)


def steps(rows, rate=None):
    """Of the rows of oktopk_bench, a line per scheme."""
    schemes = grouped(rows)
    dense = median(schemes["dense"], "seconds") if "dense" in schemes else None
    heading = ["algorithm", "s, median", "slowest", "selection", "wire time", "against dense",
               "words sent", "messages"]
    lines = []
    for name, of in schemes.items():
        words = most(of, "words_sent_max", "words_received_max")
        seconds = median(of, "seconds")
        lines.append([
            name, f"{seconds:.5f}", f"{most(of, 'seconds'):.5f}",
            f"{median(of, 'select_seconds'):.5f}",
            f"{words * 32 / bits_per_second(rate):.5f}" if rate else "-",
            f"{dense / seconds:.2f} x" if dense else "-",
            f"{most(of, 'words_sent_max'):.0f}", f"{most(of, 'messages_sent_max'):.0f}"])
    return aligned(heading, lines) + note(
        "Times are of the whole iteration, selection included; wire time is what the most words "
        "through one link take at its rate. Words and messages: the most of any rank and "
        "iteration; of dense the least that any scheme sends.")


def is_floor(row):
    """Whether the words of a scheme are not counted, but the least that any sends."""
    return str(row["words_are_a_floor"]) == "1"


def is_slower(row):
    """Whether a scheme is slower than dense, as printed."""
    speedup = row["speedup_over_dense"]
    return row["algorithm"] != "dense" and speedup != "" and float(speedup) < 0.995


def comparison(rows, times=""):
    """Of the rows of `compare`, a line per scheme; `times` says where the times come from."""
    heading = ["scheme", "words sent", "/2k(P-1)/P", "messages", "selection", "the rest", "in all",
               "against dense", "density", "xi", "captured"]
    floors = any(is_floor(row) for row in rows)
    slower = sum(map(is_slower, rows))
    lines = []
    for row in rows:
        ratio, speedup = row["lower_bound_ratio"], row["speedup_over_dense"]
        lines.append([
            row["algorithm"], f"{float(row['words_sent']):.0f}{'*' * is_floor(row)}",
            f"{float(ratio):.2f}" if ratio != "" else "-", str(row["messages"]),
            *(f"{1e3 * float(row[name + 'seconds']):.4f}"
              for name in ("selection_", "communication_", "")),
            f"{float(speedup):.2f} x{' SLOWER' * is_slower(row)}" if speedup != "" else "-",
            *(f"{float(row[name]):.4f}" for name in ("output_density", "xi", "captured"))])
    return aligned(heading, lines) + note(
        "Words and messages: the most that any rank sends in any step."
        + " *: not counted, but the least that any algorithm sends, since the communicator's own "
        "hides its messages." * floors,
        f"Times: milliseconds of a rank per iteration, medians. {times}",
        "Density: of the update. xi: its distance from the true top k of the dense sum, as in the "
        "paper's Assumption 1. Captured: the share of the dense sum's squared norm; the true top k "
        f"has {mean(rows, 'captured_by_top_k'):.4f}.",
        f"{slower} of {len(rows) - 1} schemes are SLOWER than dense here." * bool(slower))


def scaling(rows):
    """Of the rows of `simulated`, a line per scheme and a column per number of ranks."""
    ranks = list(grouped(rows, "ranks"))
    times = {(row["algorithm"], row["ranks"]): float(row["milliseconds"]) for row in rows}

    def cell(name, each):
        value = times.get((name, each))
        return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"

    return aligned(["P", *map(str, ranks)],
                   [[name, *(cell(name, each) for each in ranks)] for name in grouped(rows)])


def accuracy(rows):
    """Of the rows of `selection-accuracy`, a line per scheme."""
    heading = ["scheme", "iterations", "local/k mean", "local deviation", "local/k extreme",
               "result/k", "its deviation"]
    lines = []
    for name, of in grouped(rows).items():
        k = float(of[0]["k"])
        local, result = ([count / k for count in column(of, each)]
                         for each in ("local_mean", "global"))
        least, largest = min(column(of, "local_min")) / k, most(of, "local_max") / k
        lines.append([name, str(len(of)), f"{fmean(local):.3f}", deviation(local),
                      f"{least:.2f}..{largest:.2f}", f"{fmean(result):.3f}", deviation(result)])
    return aligned(heading, lines) + note(
        "Deviation: the mean over iterations of |selected - k| / k; local: of the mean of the "
        "ranks. A scheme without a global selection (gaussian_k) gives the union of the ranks' "
        "selections.")


def deviation(ratios):
    """The mean distance of ratios from 1, in percent."""
    return f"{100 * fmean(abs(ratio - 1) for ratio in ratios):.1f} %"


# A kind of CSV file is known by a column that no other kind has; its table and its picture are
# functions of that name.
KINDS = {"speedup_over_dense": "comparison", "milliseconds": "scaling", "iteration": "accuracy",
         "select_seconds": "steps"}


def kind_of(rows):
    """Of which kind rows are, or None."""
    return next((kind for name, kind in KINDS.items() if rows and name in rows[0]), None)
