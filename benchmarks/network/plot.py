#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py CSV PICTURE TITLE: the medians of oktopk_bench's rows, a bar per algorithm, selection apart from the rest."""

import csv
import statistics
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def medians(path):
    """For each algorithm, in the order of the file: median of the selection and of the whole iteration, in seconds."""
    rows = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["algorithm"], []).append((float(row["select_seconds"]), float(row["seconds"])))
    return {name: [statistics.median(values) for values in zip(*of)] for name, of in rows.items()}


def main():
    source, picture, title = sys.argv[1:]
    figures = medians(source)
    names = sorted(figures, key=lambda name: figures[name][1], reverse=True)
    selection = [figures[name][0] for name in names]
    whole = [figures[name][1] for name in names]
    rest = [all_of_it - part for all_of_it, part in zip(whole, selection)]

    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.45 * len(names)))
    axes.barh(names, selection, color="#4c72b0", label="selection")
    axes.barh(names, rest, left=selection, color="#dd8452", label="communication and the rest")
    for place, seconds in enumerate(whole):
        axes.annotate(f" {seconds:.3g} s", (seconds, place), va="center", fontsize=9)
    axes.margins(x=0.12)
    axes.set_xlabel("seconds per iteration, median")
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(picture, dpi=150)


if __name__ == "__main__":
    main()
