#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py CSV PICTURE TITLE: entries selected over the iterations, locally and in the result, as the paper's Figure 6."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def read(path):
    """For each scheme, in the order of the file, its columns as lists of numbers."""
    schemes = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            columns = schemes.setdefault(row.pop("algorithm"), {})
            for name, value in row.items():
                columns.setdefault(name, []).append(float(value))
    return schemes


def main():
    source, picture, title = sys.argv[1:]
    schemes = read(source)
    figure, (local, result) = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for color, (name, of) in zip(("#4c72b0", "#55a868", "#dd8452", "#8172b3", "#937860", "#c44e52"), schemes.items()):
        local.plot(of["iteration"], of["local_mean"], color=color, linewidth=1, label=name)
        local.fill_between(of["iteration"], of["local_min"], of["local_max"], color=color, alpha=0.2, linewidth=0)
        result.plot(of["iteration"], of["global"], color=color, linewidth=1, label=name)
    k = next(iter(schemes.values()))["k"][0]
    for axes, what in ((local, "local selections (mean of the ranks, band from least to most)"), (result, "entries of the result")):
        axes.axhline(k, color="black", linewidth=0.8, linestyle="--", label="k")
        axes.set_yscale("log")
        axes.set_title(what, fontsize=9)
        axes.set_xlabel("iteration")
        axes.spines[["top", "right"]].set_visible(False)
    local.set_ylabel("entries")
    result.legend(frameon=False, fontsize=9)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(picture, dpi=130)


if __name__ == "__main__":
    main()
