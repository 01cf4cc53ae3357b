# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A picture of times per iteration: one bar per scheme, selection apart from communication, the fastest on top."""

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot


def draw(bars, picture, title, xlabel="seconds per iteration, median"):
    """`bars` maps a scheme to (selection, whole, label), times in seconds; the longest bar comes first."""
    names = sorted(bars, key=lambda name: bars[name][1], reverse=True)
    selection = [bars[name][0] for name in names]
    rest = [bars[name][1] - bars[name][0] for name in names]
    figure, axes = pyplot.subplots(figsize=(8, 1.2 + 0.45 * len(names)))
    axes.barh(names, selection, color="#4c72b0", label="selection")
    axes.barh(names, rest, left=selection, color="#dd8452", label="communication and the rest")
    for place, name in enumerate(names):
        axes.annotate(" " + bars[name][2], (bars[name][1], place), va="center", fontsize=9)
    axes.margins(x=0.35)
    axes.set_xlim(left=0)
    axes.set_xlabel(xlabel)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=9, loc="upper right")
    figure.tight_layout()
    figure.savefig(picture, dpi=150)
