#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Links that go down for a while and come back, on the emulated cluster.

Each rank of faulty_ranks lives behind a link of its own (benchmarks/network). The link of one rank goes down while the
ranks call an algorithm again and again. Where it comes back before the deadline, all calls give the same sums on all
ranks; where it comes back later, every rank has an error within 1.5 times the deadline, also the one that nobody can
reach. Needs root, iproute2 and Open MPI; ends with 77 where namespaces cannot be made.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "benchmarks"))

import real_faults  # pylint: disable=wrong-import-position
from driver import network  # pylint: disable=wrong-import-position

STARTS = 4  # seconds until the link goes down: MPI has started by then, on a machine at rest, as for all times here


def times_of(lines, word):
    """When a rank wrote lines that begin with a word."""
    return [when for when, text in lines if text.split(" ", 1)[0] == word]


def faults_of(diaries, goes_well, deadline):
    """What is not as it should be."""
    found = real_faults.different_sums(diaries)
    for rank, lines in enumerate(diaries):
        calls, errors = times_of(lines, "call"), times_of(lines, "error")
        if len(calls) < 10:
            found.append(f"rank {rank} made {len(calls)} calls only")
        elif goes_well:
            found += [] if times_of(lines, "done") else [f"rank {rank} does not end: {lines[-1:]}"]
        elif not errors:
            found.append(f"rank {rank} has no error")
        else:
            # A call that was under way when the link went down may have ended a little later.
            took = errors[0] - calls[-1]
            found += [f"rank {rank} has its error after {took:.2f} s"] if took > 1.5 * deadline else []
            found += [f"rank {rank} is not as before the call"] if times_of(lines, "changed") else []
    return found


def main():
    """Runs them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="faulty_ranks for Open MPI")
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--first", type=int, default=0, help="number of the first run")
    given = parser.parse_args()
    try:
        network.check(2)
    except SystemExit:
        sys.exit(77)
    os.environ["OPEN_MPI_OPTIONS"] = "--enable-recovery --mca orte_abort_on_non_zero_status 0"
    wrong = 0
    for number in range(given.first, given.first + given.runs):
        source = random.Random(number)
        goes_well = number % 2 == 0
        ranks = source.randint(2, 4)
        algorithm = source.choice(real_faults.ALGORITHMS)
        busy = round(real_faults.slowness())
        starts, down, deadline = (busy * seconds for seconds in ((STARTS, 1, 10) if goes_well else (STARTS, 6, 2)))
        with tempfile.TemporaryDirectory(prefix="oktopk.") as folder:
            os.environ["LINK_DOWN"] = f"{source.randint(1, ranks)} {starts} {starts + down}"
            status, _ = network.measure(
                "1gbit", ranks, "open_mpi", network.launcher_of("open_mpi", given.program), 1,
                [network.launch_of(algorithm, "open_mpi", given.program)],
                ["--log", folder, "--deadline", deadline, "--length", 100000, "--calls", 1500, "--pause-ms", 5 * busy],
                folder)
            diaries = [real_faults.read_diary(pathlib.Path(folder) / f"rank.{rank}") for rank in range(ranks)]
            found = faults_of(diaries, goes_well, deadline)
            calls = times_of(diaries[0], "call")
            pause = max((after - before for before, after in zip(calls, calls[1:])), default=0)
            if goes_well and status != 0:
                found.append(f"the launcher ended with {status}")
            if goes_well and pause < 0.9 * down:
                found.append(f"the link never was down: no pause longer than {pause:.2f} s")
        print(f"{'WRONG' if found else 'ok   '} {number}: the link of rank {os.environ['LINK_DOWN'].split()[0]} of {ranks} "
              f"down for {down} s, deadline {deadline} s, {algorithm}", flush=True)
        for sentence in found:
            print(f"      {sentence}", flush=True)
        wrong += bool(found)
    print(f"{given.runs} runs, {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
