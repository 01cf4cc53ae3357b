# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs every test case of programs of Catch2 in a process of its own, as ctest does, where no ctest knows them.

Writes a row for each case as it ends, and prints what a case says that fails. Ends with 1 where one did not pass.
"""

import argparse
import concurrent.futures
import csv
import os
import re
import subprocess
import sys
import time


def cases_of(program):
    """The names of its test cases. The status of Catch2 2 is their number."""
    listed = subprocess.run([program, "--list-test-names-only"], stdout=subprocess.PIPE, text=True, check=False)
    return [line for line in listed.stdout.splitlines() if line.strip()]


def run(program, name, limit, until):
    """How a case ended, after how many seconds, and what it said."""
    left = min(limit, until - time.monotonic())
    if left <= 0:
        return "not begun", 0.0, ""
    begun = time.monotonic()
    try:
        escaped = re.sub(r"([\[\],*\\])", r"\\\1", name)
        ended = subprocess.run([program, escaped], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               errors="replace", timeout=left, check=False)
        result, said = "passed" if ended.returncode == 0 else f"failed ({ended.returncode})", ended.stdout
    except subprocess.TimeoutExpired as late:
        result, said = f"ended after {left:.0f} s", (late.stdout or b"").decode(errors="replace")
    return result, time.monotonic() - begun, said


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="+")
    parser.add_argument("--csv", required=True, help="a row for each case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at a time")
    parser.add_argument("--limit", type=float, default=60, help="seconds of a case")
    parser.add_argument("--seconds", type=float, default=600, help="after which no case begins, and none goes on")
    asked = parser.parse_args()
    until = time.monotonic() + asked.seconds
    all_cases = [(program, name) for program in asked.programs for name in cases_of(program)]
    passed = {program: 0 for program in asked.programs}
    with open(asked.csv, "w", encoding="utf-8", newline="") as out, \
            concurrent.futures.ThreadPoolExecutor(asked.jobs) as pool:
        writer = csv.writer(out)
        writer.writerow(["program", "case", "result", "seconds"])
        under_way = {pool.submit(run, program, name, asked.limit, until): (program, name) for program, name in all_cases}
        for each in concurrent.futures.as_completed(under_way):
            program, name = under_way[each]
            result, seconds, said = each.result()
            passed[program] += result == "passed"
            writer.writerow([os.path.basename(program), name, result, f"{seconds:.1f}"])
            out.flush()
            if result != "passed":
                print(f"{os.path.basename(program)}: {name}: {result}\n{said[-3000:]}", flush=True)
    for program in asked.programs:
        of_program = sum(each == program for each, _ in all_cases)
        print(f"{os.path.basename(program)}: {passed[program]} of {of_program} test cases passed")
    print(f"{sum(passed.values())} of {len(all_cases)} test cases passed")
    return 0 if all_cases and sum(passed.values()) == len(all_cases) else 1


if __name__ == "__main__":
    sys.exit(main())
