# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""Runs processes that know their RANK and WORLD_SIZE, and meet in the file STORE or beside it.

Ends all of them when one fails, and says which one it was; the exit status is then 1. With --recoverable it ends none, and
waits for all: a launcher as mpiexec is with its option of that meaning."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", action="version", version="start_ranks.py")
    parser.add_argument("--recoverable", action="store_true", help="let the other ranks live on")
    parser.add_argument("-n", dest="ranks", type=int, required=True, help="the number of ranks")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="oktopk.") as folder:
        shared = {**os.environ, "WORLD_SIZE": str(given.ranks), "STORE": str(pathlib.Path(folder, "store"))}
        started = [subprocess.Popen(given.command, env={**shared, "RANK": str(rank)}) for rank in range(given.ranks)]
        if given.recoverable:
            for each in started:
                each.wait()
            return 0
        while any(each.poll() is None for each in started) and not any(each.poll() for each in started):
            time.sleep(0.02)
        failed = [(rank, each.returncode) for rank, each in enumerate(started) if each.returncode]
        for rank, status in failed:
            print(f"Rank {rank} of {given.ranks} ended with status {status}.", file=sys.stderr, flush=True)
        if failed:
            time.sleep(2)  # for the others to say what they have to say
        for each in started:
            each.kill()
            each.wait()
    return 1 if failed else 0


sys.exit(main())
