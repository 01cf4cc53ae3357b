# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""start_ranks.py N PROGRAM [ARGUMENT...]: runs N processes that know their RANK and WORLD_SIZE and meet in the file STORE.

Ends all of them when one fails, and says which one it was; the exit status is then 1."""

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
        while any(each.poll() is None for each in started) and not any(each.poll() for each in started):
            time.sleep(0.02)
        failed = [(rank, each.returncode) for rank, each in enumerate(started) if each.returncode]
        for rank, status in failed:
            print(f"Rank {rank} of {ranks} ended with status {status}.", file=sys.stderr, flush=True)
        if failed:
            time.sleep(2)  # for the others to say what they have to say
        for each in started:
            each.kill()
            each.wait()
    sys.exit(1 if failed else 0)


main()
