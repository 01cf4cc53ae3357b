# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tables of results, in Markdown: one function for each kind of CSV file."""

import math
import re
import textwrap
from statistics import fmean

from . import programs
from .arguments import bits_per_second, rate_text
from .results import column, grouped, mean, median, most, spread

WIDE_SPREAD = 0.2
SPEEDS = ("encode_per_second", "decode_per_second")


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


def milliseconds(seconds):
    """Seconds in milliseconds, with four digits; a dash for none."""
    value = 1e3 * seconds
    if value <= 0:
        return "-"
    return f"{value:,.{min(4, max(0, 3 - math.floor(math.log10(value))))}f}"


def is_ours(name):
    """Whether a scheme is Ok-Topk, with whatever options."""
    return name.split("(")[0].strip() == "ok_topk"


def marked(name):
    """The name of a scheme; Ok-Topk stands out."""
    return f"**{name}**" if is_ours(name) else name


def note_on_spreads(spreads):
    """Of the spread of each scheme, a sentence on those that are wide."""
    wide = [f"{name} {100 * value:.0f} %" for name, value in spreads.items() if value > WIDE_SPREAD]
    return ("~: times differ widely between iterations (interquartile range over median: "
            f"{', '.join(wide)}). Measure more of them (--steps), or on a machine that does "
            "nothing else.") if wide else ""


# Dense allreduces of the library that send every value as it is, as MPI's does.
BASELINES = {name for name, kind in programs.catalogue().items()
             if kind != "sparse" and name != "dense_bfloat16"}


def is_baseline(name):
    """Whether a scheme is a dense allreduce that sends every value as it is: one that others are
    compared with."""
    return name.startswith("gloo/") or (re.split(r"[(\s]", name)[0] in BASELINES
                                        and "codec" not in name)


def is_sparse(name):
    """Whether a scheme selects entries; the others send all, coded or not."""
    kind = programs.kind_of_scheme(name)
    return not re.match("dense|ring|gloo/", name) if kind is None else kind == "sparse"


def best_dense(times):
    """The fastest dense allreduce among the times of schemes, or None."""
    return min(filter(is_baseline, times), key=times.get, default=None)


def by_rate(rows):
    """The rows of each rate of the links, or of none."""
    return grouped([{"rate": None, **row} for row in rows], "rate")


def steps(rows):
    """Of the rows of oktopk_bench, a table for each rate of the links and in it a line per scheme, the
    fastest first."""
    rates = by_rate(rows)
    parts, bests, spreads = zip(*(steps_at(of, each, len(rates) > 1)
                                  for each, of in rates.items()))
    return "\n\n".join(parts) + note(
        *bests,
        "Times: milliseconds of the whole iteration, selection included; the median and the worst "
        "iteration, of the slowest rank. Wire: the most words through one link at its rate. Vs best: "
        "how many times as fast as the best dense allreduce in the table; vs MPI: as the MPI "
        "library's own choice. Words and messages: the most of any rank and iteration. *: not "
        "counted, but the least that any scheme sends.",
        note_on_back_to_back(rows), *spreads)


def note_on_back_to_back(rows):
    """A sentence on the schemes that were measured in the way of Gloo's benchmark, if any."""
    names = {row["algorithm"] for row in rows if str(row.get("back_to_back")) == "1"}
    if not names:
        return ""
    all_of_them = names == set(filter(is_baseline, grouped(rows)))
    return (f"{'The dense allreduces without a code' if all_of_them else ', '.join(sorted(names))}: "
            "called back to back, without a barrier, in place; the time of rank 0. That is some 5 % "
            "less than in the way of the others, which favours the baseline. Of Gloo a time is the "
            "median of a round.")


def steps_at(rows, rate, named):
    """Of one rate: the table, a sentence on the best dense allreduce, one on wide spreads; `named`
    says that they name the rate."""
    schemes = grouped(rows)
    times = {name: median(of, "seconds") for name, of in schemes.items()}
    spreads = {name: spread(of, "seconds") for name, of in schemes.items()}
    best = best_dense(times)
    of_rate = f"{rate_text(rate)}: " if named and rate else ""
    heading = ["scheme", "time, ms", "worst", "select", "wire", "vs best", "vs MPI", "words sent",
               "msgs"]
    lines = []
    for name in sorted(schemes, key=times.get):
        of = schemes[name]
        words = most(of, "words_sent_max", "words_received_max")
        lines.append([
            marked(name), milliseconds(times[name]) + " ~" * (spreads[name] > WIDE_SPREAD),
            milliseconds(most(of, "seconds")), milliseconds(median(of, "select_seconds")),
            milliseconds(words * 32 / bits_per_second(rate)) if rate else "-",
            *(f"{times[base] / times[name]:.2f} x" if base in times else "-"
              for base in (best, "dense")),
            f"{most(of, 'words_sent_max'):,.0f}{'*' * any(map(is_floor, of))}",
            f"{most(of, 'messages_sent_max'):.0f}"])
    sentence = f"{of_rate}Best dense allreduce: {best}, {milliseconds(times.get(best, 0))} ms"
    if best == "dense":
        sentence += ", the MPI library's own choice"
    elif "dense" in times:
        sentence += (f"; the MPI library's own choice (dense): {milliseconds(times['dense'])} ms, "
                     f"{times['dense'] / times[best]:.2f} times as long")
    wide = note_on_spreads(spreads)
    return (of_rate.strip() + "\n\n" * bool(of_rate) + aligned(heading, lines),
            f"{sentence}." if best else "", of_rate * bool(wide) + wide)


def is_floor(row):
    """Whether the words of a scheme are not counted, but the least that any sends."""
    return str(row["words_are_a_floor"]) == "1"


def is_slower(row):
    """Whether a scheme is slower than dense, as printed."""
    speedup = row["speedup_over_dense"]
    return row["algorithm"] != "dense" and speedup != "" and float(speedup) < 0.995


def sends_everything(row):
    """Whether an update has all entries although fewer were asked for: no ratio to k means much."""
    return float(row["output_density"]) == 1 and int(row["k"]) < int(row["length"])


def all_k(rows):
    """Every k that a scheme of these rows has, for people; dense schemes have that of the command."""
    return f"k = {' and '.join(f'{k:,}' for k in sorted({int(row['k']) for row in rows}))}"


def of_top_k(rows):
    """What the true top k captures, for each k."""
    shares = {int(row["k"]): [] for row in rows}
    for row in rows:
        shares[int(row["k"])].append(float(row["captured_by_top_k"]))
    return " and ".join(f"{fmean(of):.4f}" + f" for k = {k:,}" * (len(shares) > 1) for k, of in sorted(shares.items()))


def comparison(rows, in_turns=False):
    """Of the rows of `compare`, a line per scheme, the fastest first; `in_turns`: its ranks took
    turns in one process."""
    heading = ["scheme", "words sent", "/ least", "msgs", "time, ms", "select, ms", "vs dense",
               "density", "xi", "captured"]
    floors = any(is_floor(row) for row in rows)
    slower = sum(map(is_slower, rows))
    spreads = {row["algorithm"]: float(row.get("spread") or 0) for row in rows}
    lines = []
    for row in sorted(rows, key=lambda row: float(row["seconds"])):
        ratio, speedup = row["lower_bound_ratio"], row["speedup_over_dense"]
        wide = spreads[row["algorithm"]] > WIDE_SPREAD
        lines.append([
            marked(row["algorithm"]), f"{float(row['words_sent']):,.0f}{'*' * is_floor(row)}",
            "-" if ratio == "" or sends_everything(row) else f"{float(ratio):.2f}",
            str(row["messages"]), milliseconds(float(row["seconds"])) + " ~" * wide,
            milliseconds(float(row["selection_seconds"])),
            f"{float(speedup):.2f} x{' !' * is_slower(row)}" if speedup != "" else "-",
            *(f"{float(row[name]):.4f}" for name in ("output_density", "xi", "captured"))])
    return aligned(heading, lines) + note(
        "Words and messages (msgs): the most that any rank sends in any step; / least: words over "
        "2k(P-1)/P, which any scheme must send for k entries."
        + " Schemes differ in k: each has its own." * (len({row["k"] for row in rows}) > 1) + " *: not counted, but the least that any algorithm sends, since the communicator's own "
        "hides its messages." * floors,
        "Times: milliseconds of a rank per iteration, medians; select: selection, part of the "
        "time." + " The ranks took turns in one process; a rank's time is without the others' "
        "turns." * in_turns,
        "Density: of the update. xi: its distance from the true top k of the dense sum, as in the "
        "paper's Assumption 1. Captured: the share of the dense sum's squared norm; the true top k "
        f"has {of_top_k(rows)}.",
        f"!: slower than dense, {slower} of {len(rows) - 1} schemes." * bool(slower),
        note_on_spreads(spreads))


def is_dense(row):
    """Whether a scheme of `compare` sums whole gradients."""
    kind = programs.kind_of_scheme(row["algorithm"])
    return sends_everything(row) if kind is None else kind != "sparse"


def seconds_of(row):
    """The time of an iteration."""
    return float(row["seconds"])


def as_fast(one, other):
    """Whether two schemes differ by less than 0.5 %, or than half the iterations of each differ."""
    times = seconds_of(one), seconds_of(other)
    scatter = sum(seconds_of(row) * float(row.get("spread") or 0) for row in (one, other)) / 2
    return abs(times[0] - times[1]) <= max(0.005 * max(times), scatter)


def less_than(row, other, called):
    """By how much a scheme takes less or more time than another."""
    saved = seconds_of(other) - seconds_of(row)
    return f"{milliseconds(abs(saved)).replace('-', '0')} ms {'less' if saved >= 0 else 'more'} than {called}"


def verdict(rows, dense, sparse, own):
    """Which scheme of `compare` wins, and what it saves an iteration."""
    def takes(row):
        return f"{row['algorithm']} takes {milliseconds(seconds_of(row))} ms an iteration"

    if dense is None or sparse is None:
        only = sparse or dense
        return (f"{takes(only)}" + ", the least of these" * (len(rows) > 1) + f". No "
                f"{'dense' if dense is None else 'sparse'} scheme is among them, so nothing can be "
                f"said about what a sparse one saves: --algorithm names the schemes.")
    beside = [(dense, f"{dense['algorithm']}, the fastest dense scheme")]
    if own is not None and own is not dense:
        beside.insert(0, (own, "dense"))
    differences = " and ".join(less_than(sparse, *each) for each in beside)
    if as_fast(sparse, dense):
        text = (f"A tie: {takes(sparse)}, {differences}, which is no more than times differ from "
                "iteration to iteration.")
    elif seconds_of(sparse) < seconds_of(dense):
        text = f"Sparse wins: {takes(sparse)}, {differences}."
    else:
        differences = " and ".join(less_than(sparse, row, row["algorithm"]) for row, _ in beside)
        text = (f"Dense wins: {takes(dense)}. {sparse['algorithm']}, the fastest sparse scheme, takes "
                f"{differences}. Keep a dense allreduce for such gradients on such a network.")
    text += "" if own is not None else " dense, the communicator's own allreduce, is not among these schemes."
    ours = next((row for row in rows if is_ours(row["algorithm"])), None)
    return text + (f" {takes(ours)}." if ours is not None and ours is not sparse else "")


def share_of_step(step_ms, base, other):
    """What a training step of so many milliseconds with the scheme `base` becomes with another."""
    if base is None or other is None or base is other:
        return "--step-ms needs a dense scheme and a sparse one to compare."
    if step_ms is None:
        return (f"What share of a training step that is: --step-ms T, the milliseconds of a whole step "
                f"with {base['algorithm']}.")
    rest = step_ms - 1e3 * seconds_of(base)
    if rest < 0:
        return (f"A step of {step_ms:g} ms cannot have {base['algorithm']} in it, which takes "
                f"{milliseconds(seconds_of(base))} ms alone: --step-ms is the time of a whole step.")
    now = rest + 1e3 * seconds_of(other)
    return (f"A step of {step_ms:g} ms with {base['algorithm']} becomes {now:.4g} ms with "
            f"{other['algorithm']}: {100 * abs(step_ms - now) / step_ms:.1f} % "
            f"{'shorter' if now <= step_ms else 'longer'}, where no communication hides behind "
            "computation.")


def arrival(row):
    """What the share captured means for the density."""
    density = int(row["k"]) / int(row["length"])
    captured = max(0.0, float(row["captured"]))
    if captured >= 0.9:
        rest = "little waits in the residuals."
    else:
        rest = ("the rest waits in the residuals for later iterations, so expect the delay to count in "
                "training." + f" More arrives at once at a higher density: --density {2 * density:.2g} "
                "shows how much." * (2 * density <= 1))
    return (f"At a density of {100 * density:.3g} %, {100 * captured:.0f} % of the energy (squared norm) "
            f"of the gradients' sum arrives at once with {row['algorithm']}; {rest}")


def answer(rows, step_ms=None, kind=""):
    """What the rows of `compare` mean, in sentences: the winner, what it saves an iteration and, of a
    step of so many milliseconds, and what the share captured says about the density. `kind` says
    whether the times were measured."""
    fastest = sorted(rows, key=seconds_of)
    dense = next(filter(is_dense, fastest), None)
    sparse = next((row for row in fastest if not is_dense(row)), None)
    own = next((row for row in rows if row["algorithm"] == "dense"), None)
    share = ("" if step_ms is None and (dense is None or sparse is None)
             else share_of_step(step_ms, own or dense, sparse))
    return note(verdict(rows, dense, sparse, own), share,
                "" if sparse is None else arrival(sparse), kind)


def scaling(rows):
    """Of the rows of `simulated`, a line per scheme and a column per number of ranks."""
    ranks = list(grouped(rows, "ranks"))
    times = {(row["algorithm"], row["ranks"]): float(row["milliseconds"]) for row in rows}

    def cell(name, each):
        value = times.get((name, each))
        return "" if value is None else f"{value:.2f}" if value < 100 else f"{value:.0f}"

    names = sorted(grouped(rows), key=lambda name: times.get((name, ranks[-1]), math.inf))
    return aligned(["ms on P ranks", *map(str, ranks)],
                   [[marked(name), *(cell(name, each) for each in ranks)] for name in names])


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


def training(rows):
    """Of the rows of `training`, a line per scheme: how it ended, and what it sent."""
    heading = ["scheme", "epochs", "loss", "accuracy, %", "words a rank", "of the first"]
    schemes = grouped(rows)
    first = float(next(iter(schemes.values()))[-1]["words_so_far"])
    lines = [[name, of[-1]["epoch"], of[-1]["loss"], f"{100 * float(of[-1]['accuracy']):.2f}",
              f"{float(of[-1]['words_so_far']):,.0f}",
              f"{float(of[-1]['words_so_far']) / first:.3f}" if first else "-"]
             for name, of in schemes.items()]
    return aligned(heading, lines)


def torch_training(rows):
    """Of the rows of `torch`, a line per scheme: how it ended, where its time went, what it sent."""
    heading = ["scheme", "steps", "s/step", "compute", "wait", "hidden", "words/step", "loss", "right",
               "xi"]
    lines, tested = [], []
    for name, of in grouped(rows).items():
        last = {key: float(value) for key, value in of[-1].items()
                if key not in ("algorithm", "workload", "xi")}
        steps, calls = last["iteration"], last["communication_seconds"]
        xi = [float(row["xi"]) for row in of if row["xi"]]
        tested += [int(float(row["tested"])) for row in of if row.get("tested")]
        hidden = (f"{100 * last['hidden_seconds'] / calls:.0f} of "
                  f"{100 * last['hideable_seconds'] / calls:.0f} %") if calls else "-"
        lines.append([name, f"{steps:.0f}",
                      *(f"{last[part] / steps:.3f}" for part in ("seconds", "compute_seconds",
                                                                 "wait_seconds")),
                      hidden, f"{last['words'] / steps:,.0f}", f"{last['test_loss']:.4f}",
                      f"{100 * last['accuracy']:.1f} %", f"{fmean(xi):.3f}" if xi else "-"])
    return aligned(heading, lines) + note(
        "Compute: forward and backward pass and optimizer; wait: for averages, with nothing else to "
        "do; seconds a step, means of the ranks. Hidden: the share of the calls' time, selection "
        "included, that ran behind the backward pass, of the share for which there were gradients "
        "early enough. Words: sent by a rank; of dense the least that any scheme sends. Loss, right: "
        "of the test data" + (f", {min(tested):,} to {max(tested):,} images or words of them a row"
                              if tested else "") + "."
    ) + reaching(rows)


def reaching(rows):
    """Of the rows of `torch`, when each scheme reaches the accuracy that dense has after two thirds of
    its run; nothing where dense is not among them."""
    schemes = grouped(rows)
    dense = schemes.get("dense", [])
    goals = [float(row["accuracy"]) for row in dense
             if 3 * float(row["iteration"]) <= 2 * float(dense[-1]["iteration"])]
    if not goals:
        return ""

    def first(of):
        return next((row for row in of if float(row["accuracy"]) >= goals[-1]), None)

    lines = []
    for name, of in schemes.items():
        row = first(of)
        if row is None:
            lines.append([name, "-", "-", "-", "-"])
            continue
        seconds = float(row["seconds"])
        lines.append([name, row["iteration"], f"{seconds:.2f}",
                      f"{float(first(dense)['seconds']) / seconds:.1f}",
                      f"{seconds / float(row['compute_seconds']):.2f}"])
    heading = ["scheme", "iterations", "seconds", "times of dense", "of its computation"]
    return f"\n\nUntil {100 * goals[-1]:.1f} % are right:\n\n" + aligned(heading, lines)


def case_of(row):
    """What a format was measured on, for people."""
    cut = f", in {row['parts']} messages" * (row["parts"] != "1")
    return (f"{row['input']}, n = {int(row['length']):,}, density {float(row['density']):g}{cut}")


def coding(rows):
    """Of the rows of `formats`, a table for each input and a line for each format."""
    heading = ["format", "bits/entry", "of COO", "encode, M/s", "decode, M/s", "value error"]
    parts = []
    for case, of in grouped([{**row, "case": case_of(row)} for row in rows], "case").items():
        lines = [[row["format"], f"{float(row['bits_per_entry']):.2f}",
                  f"{float(row['bits_per_entry']) / 64:.3f}",
                  *(f"{float(row[name]) / 1e6:,.0f}" for name in SPEEDS),
                  f"{float(row['value_error']):.2g}" if float(row["value_error"]) else "-"]
                 for row in of]
        least = f"{float(of[0]['gap_entropy']):.2f}", f"{float(of[0]['choice_bits']):.2f}"
        parts.append(f"{case}; entropy of the gaps {least[0]} bits, log2 C(n, k)/k = {least[1]}:\n\n"
                     + aligned(heading, lines))
    return "\n\n".join(parts) + note(
        "Bits an entry: indices and values with all that belongs to them, less in packed_indices, "
        "which sends no values. Encode, decode: millions of entries a second, medians. Value "
        "error: of all values together, the norm of what is lost over their norm.")


def counted(cell, divisor, form):
    """A count of device_cost; away from the emulator some are empty."""
    return format(float(cell) / divisor, form) if cell else "-"


def device_cost(rows):
    """Of the rows of device_cost, a table for each length and form and a line for each part."""
    heading = ["part", "launches", "blocks", "waits", "copies", "read B/n", "written B/n",
               "instructions/n"]
    parts = []
    for case, of in grouped([{**row, "case": f"{row['form']}, n = {int(row['length']):,}"}
                             for row in rows], "case").items():
        length = int(of[0]["length"])
        lines = [[row["part"],
                  *(counted(row[name], 1, ",.4g") for name in ("launches", "blocks", "host_waits",
                                                               "copies")),
                  *(counted(row[name], length, ".3f") for name in ("bytes_read", "bytes_written")),
                  counted(row["instructions_per_element"], 1, ".2f")] for row in of]
        parts.append(f"{case}, density {float(of[0]['density']):g}, {of[0]['ranks']} ranks:\n\n"
                     + aligned(heading, lines))
    return "\n\n".join(parts) + note(
        "Of one rank and one call in the steady state. Waits: of the host. Bytes: asked for by "
        "kernels in global memory, and instructions of threads, for each value of the gradient.")


def deviation(ratios):
    """The mean distance of ratios from 1, in percent."""
    return f"{100 * fmean(abs(ratio - 1) for ratio in ratios):.1f} %"


# A kind of CSV file is known by a column that no other kind has; its table and its picture are
# functions of that name.
KINDS = {"hidden_seconds": "torch_training", "speedup_over_dense": "comparison",
         "milliseconds": "scaling", "local_mean": "accuracy", "bits_per_entry": "coding",
         "words_so_far": "training", "select_seconds": "steps",
         "instructions_per_element": "device_cost"}
# The same for commands whose rows no single table holds: each has a part `show` of its own.
COMMANDS = {"learning_rate": "peers", "trial_calls": "grid", "explain": "changing"}


def known_by(columns, rows):
    """What the first of these columns that rows have stands for, or None."""
    return next((what for name, what in columns.items() if rows and name in rows[0]), None)


def kind_of(rows):
    """Of which kind rows are, or None."""
    return known_by(KINDS, rows)


def command_of(rows):
    """The command whose own rows these are, or None."""
    return known_by(COMMANDS, rows)
