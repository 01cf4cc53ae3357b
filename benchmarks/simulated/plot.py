# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""plot.py CSV PICTURE: time over the number of ranks, one line per scheme, both axes logarithmic."""

import csv
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt


def main(table, picture):
    lines = {}
    with open(table, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            lines.setdefault(row["algorithm"], []).append((int(row["ranks"]), float(row["milliseconds"])))
    figure, axes = plt.subplots(figsize=(7, 4.5))
    markers = "os^vD*XPp"
    for number, (algorithm, points) in enumerate(lines.items()):
        points.sort()
        axes.plot(*zip(*points), marker=markers[number % len(markers)], label=algorithm)
    ranks = sorted({p for points in lines.values() for p, _ in points})
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(ranks, [str(p) for p in ranks])
    axes.minorticks_off()
    axes.set_xlabel("ranks")
    axes.set_ylabel("simulated communication per iteration, ms")
    axes.set_title("Weak scaling of BERT (n = 133,547,324, density 1 %), Piz Daint simulated", fontsize=10)
    axes.grid(True, which="major", alpha=0.3)
    axes.legend(bbox_to_anchor=(1.01, 1), loc="upper left", frameon=False)
    figure.tight_layout()
    figure.savefig(picture, dpi=120)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
