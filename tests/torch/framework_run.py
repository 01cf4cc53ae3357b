# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchrun framework_run.py OUT PROGRAM [ARGUMENT...]: runs a program with oktopk_torch on this rank, and keeps in OUT.RANK what its
last state, or averager, has had: weights, residuals, residuals when it was loaded, and the number of steps."""

import os
import runpy
import sys

import oktopk_torch
import torch
from ddp_cases import residuals_of

MADE, LOADED = [], []


def noted(function, note):
    def both(self, *arguments, **options):
        function(self, *arguments, **options)
        note(self)
    return both


if __name__ == "__main__":
    out, sys.argv = sys.argv[1], sys.argv[2:]
    torch.set_num_threads(1)
    sums = oktopk_torch.averager
    sums._begin = noted(sums._begin, MADE.append)
    sums._load = noted(sums._load, lambda each: LOADED.append(residuals_of(each)))
    runpy.run_path(sys.argv[0], run_name="__main__")
    last = MADE[-1]
    weights = [each.detach().flatten() for each in getattr(last, "_index", ())]
    torch.save({"weights": torch.cat(weights) if weights else None, "residuals": residuals_of(last), "loaded": LOADED,
                "steps": last.last_step()["steps"]}, f"{out}.{os.environ['RANK']}")
