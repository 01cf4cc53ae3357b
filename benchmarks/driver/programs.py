# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds programs, runs them and says what happens."""

import datetime
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
STARTED = time.monotonic()

COMPILER = ["g++", "cmake", "ninja-build", "libtrilinos-kokkos-dev", "libcli11-dev", "libfmt-dev"]
OPEN_MPI = ["libopenmpi-dev", "openmpi-bin"]
RELEASE = ["-DCMAKE_BUILD_TYPE=Release", "-DOKTOPK_ENABLE_TESTS=OFF"]
WITH_OPEN_MPI = "-DMPI_CXX_COMPILER=mpicxx.openmpi"


def say(text):
    """Says what happens next, with the seconds since the start."""
    print(f"[{time.monotonic() - STARTED:4.0f} s] {text}", file=sys.stderr, flush=True)


def version():
    """The version of oktopk, as CMake has it."""
    text = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
    return re.search(r"^project\(oktopk VERSION ([0-9.]+)", text, re.M)[1]


def fail(text):
    """Ends the program, and says why."""
    raise SystemExit(f"run.py: {text}")


def output_of(command):
    """What a command writes, whether it succeeds or not."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def run(command, what, **options):
    """Runs a command whose output is shown only if it fails; `what` then says what that means."""
    command = list(map(str, command))
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, **options)
    except OSError as fault:
        fail(f"{what}: cannot run {command[0]}: {fault.strerror}")
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        fail(f"{what}: status {done.returncode} of {command[0]}")
    return done.stdout


def on_one_machine(command):
    """The command with the settings of Open MPI that cmake/setup.sh makes for one machine."""
    return ["sh", "-c", '. "$0" && exec "$@"', ROOT / "cmake" / "setup.sh", *command]


def builds():
    """The folder for builds and output: in the checkout, or where that cannot be written in the
    current folder."""
    inside = ROOT / "build"
    writable = os.access(inside if inside.exists() else ROOT, os.W_OK)
    return inside if writable else pathlib.Path.cwd() / "build"


def prepare(given, packages, folder=None, target="", *options, source="."):
    """Installs packages that are missing (Debian, Ubuntu) and builds a target in a folder."""
    if folder is None and not packages:
        return
    command = ["sh", ROOT / "cmake" / "prepare.sh", *(["--yes"] if given.yes else []),
               given.build.absolute(), " ".join(packages)]
    if folder is not None:
        command += [source, folder.absolute(), target, *options]
    done = subprocess.run(list(map(str, command)), stdout=sys.stderr.fileno(), check=False)
    if done.returncode != 0:
        raise SystemExit(done.returncode)


def schemes_of(bench):
    """All schemes that oktopk_bench knows."""
    names = re.findall(r"^\w+(?=:)", output_of([bench, "--list"]), re.M)
    if not names:
        fail(f'"{bench}" does not say which schemes it knows; name some with --algorithm')
    return names


def set_outputs(given, folder, name):
    """Puts table and picture below the folder of builds where the options do not name them."""
    folder = given.build / folder
    if given.csv is None or given.plot is False:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            fail(f"cannot make the folder {folder}: {fault.strerror}; --output names another place")
    given.csv = given.csv or folder / f"{name}.csv"
    given.plot = folder / f"{name}.png" if given.plot is False else given.plot


def wrote(*paths):
    """Says which files were written."""
    say("Wrote " + ", ".join(str(path) for path in paths if path))


def machine():
    """The cores that this process may use, and the processor."""
    try:
        cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        cpuinfo = ""
    processor = re.search(r"^model name.*?: *(.*)", cpuinfo, re.M)
    cores = len(os.sched_getaffinity(0))
    return f"{cores} core{'s' * (cores > 1)}{f' ({processor[1]})' if processor else ''}"


def note_crowding(ranks):
    """Says so where ranks outnumber the cores."""
    cores = len(os.sched_getaffinity(0))
    if ranks > cores:
        print(f"note: {ranks} ranks share {cores} core{'s' * (cores > 1)}: a millisecond of "
              f"computation of every rank costs {ranks / cores:.3g} here; time on the wire does "
              "not add up", file=sys.stderr)


def headline(title, how=""):
    """Prints what was measured, where and when."""
    print(f"\n{title}; {how}{machine()}, {datetime.date.today()}:\n")
