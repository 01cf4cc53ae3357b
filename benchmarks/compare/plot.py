#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py CSV PICTURE TITLE: a bar per scheme of what table.awk wrote, as in the paper's Figures 8 and 10."""

import csv
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "shared"))
import stacked_bars


def main():
    source, picture, title = sys.argv[1:]
    bars = {}
    with open(source, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            seconds = float(row["seconds"])
            floor = "*" if row["words_are_a_floor"] == "1" else ""
            label = f"{1e3 * seconds:.3g} ms, {float(row['words_sent']):,.0f}{floor} words"
            bars[row["algorithm"]] = (float(row["selection_seconds"]), seconds, label)
    stacked_bars.draw(bars, picture, title, "seconds of a rank per iteration, median    (* the least that any scheme sends)")


if __name__ == "__main__":
    main()
