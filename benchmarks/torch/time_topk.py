# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Times torch.topk of magnitudes on a GPU, beside a copy of the vector, for select_bench to be compared with."""

import argparse
import csv
import statistics
import time

import torch


def seconds_of(action, repetitions):
    """The median of so many runs, each to its end."""
    taken = []
    for _ in range(repetitions + 3):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        action()
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken[3:])  # what comes first makes room


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=14_728_266, help="length of the vector")
    parser.add_argument("--density", type=float, nargs="+", default=[0.001, 0.01])
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--csv", required=True)
    asked = parser.parse_args()
    values = torch.randn(asked.n, device="cuda")
    room = torch.empty_like(values)
    rows = [("copy", "", seconds_of(lambda: room.copy_(values), asked.repetitions))]
    for density in asked.density:
        k = max(1, round(density * asked.n))
        rows.append(("abs_topk", density, seconds_of(lambda: torch.topk(values.abs(), k, sorted=False),
                                                     asked.repetitions)))
    with open(asked.csv, "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["torch", "gpu", "name", "length", "density", "seconds"])
        for name, density, seconds in rows:
            writer.writerow([torch.__version__, torch.cuda.get_device_name(), name, asked.n, density, f"{seconds:.9f}"])


if __name__ == "__main__":
    main()
