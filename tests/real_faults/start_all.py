#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""start_all.py -n N PROGRAM [ARGUMENT...]: a launcher of N processes that know their RANK and WORLD_SIZE and meet beside the
file STORE. It waits for all of them and ends none."""

import os
import pathlib
import subprocess
import sys
import tempfile

if sys.argv[1] == "-n":
    ranks, command = int(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory(prefix="oktopk.") as folder:
        shared = {**os.environ, "WORLD_SIZE": str(ranks), "STORE": str(pathlib.Path(folder, "store"))}
        for each in [subprocess.Popen(command, env={**shared, "RANK": str(rank)}) for rank in range(ranks)]:
            each.wait()
