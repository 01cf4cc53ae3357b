#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py CSV PICTURE TITLE: the medians of oktopk_bench's rows, a bar per algorithm, selection apart from the rest."""

import csv
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import stacked_bars


def medians(path):
    """For each algorithm, in the order of the file: median of the selection and of the whole iteration, in seconds."""
    rows = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["algorithm"], []).append((float(row["select_seconds"]), float(row["seconds"])))
    return {name: [statistics.median(values) for values in zip(*of)] for name, of in rows.items()}


def main():
    source, picture, title = sys.argv[1:]
    bars = {name: (*figures, f"{figures[1]:.3g} s") for name, figures in medians(source).items()}
    stacked_bars.draw(bars, picture, title)


if __name__ == "__main__":
    main()
