# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""start_ranks.py N PROGRAM [ARGUMENT...]: runs N processes that know their RANK and WORLD_SIZE and meet in the file STORE.

Ends all of them when one fails; the exit status is that of the first one that failed."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time


def main():
    ranks, command = int(sys.argv[1]), sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        shared = {**os.environ, "WORLD_SIZE": str(ranks), "STORE": str(pathlib.Path(folder, "store"))}
        started = [subprocess.Popen(command, env={**shared, "RANK": str(rank)}) for rank in range(ranks)]
        status = 0
        while any(each.poll() is None for each in started) and status == 0:
            status = next((each.poll() for each in started if each.poll()), 0)
            time.sleep(0.02)
        if status != 0:
            time.sleep(2)  # for the others to say what they have to say
        for each in started:
            each.kill()
        codes = [each.wait() for each in started]
    sys.exit(1 if status or any(codes) else 0)


main()
