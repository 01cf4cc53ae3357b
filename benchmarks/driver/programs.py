# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Builds programs, runs them and says what happens."""

import contextlib
import ctypes
import datetime
import functools
import importlib.util
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
STARTED = time.monotonic()

COMPILER = ["g++", "cmake", "ninja-build", "libtrilinos-kokkos-dev", "libcli11-dev", "libfmt-dev"]
OPEN_MPI = ["libopenmpi-dev", "openmpi-bin"]
RELEASE = ["-DCMAKE_BUILD_TYPE=Release", "-DOKTOPK_ENABLE_TESTS=OFF"]
WITH_OPEN_MPI = "-DMPI_CXX_COMPILER=mpicxx.openmpi"
MATPLOTLIB = "python3-matplotlib"

# Seconds after which a build says that it is under way, and between two lines of any long step.
MOMENT = 3
PATIENCE = 30


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


def keep_orphans():
    """Makes this process the parent of all that its programs leave behind, so that `end_all` finds it (Linux)."""
    subreaper = 36  # PR_SET_CHILD_SUBREAPER
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(subreaper, 1, 0, 0, 0)


def descendants():
    """The processes that this one has started, and those that these have; not those that have ended."""
    children = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent = path.read_text(errors="replace").rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(path.parent.name))
    found = children.get(os.getpid(), [])[:]
    for each in found:
        found += children.get(each, [])
    return found


def end_all():
    """Ends all that this program has started: a builder, its compilers, a launcher, its ranks. They may clean up for two
    seconds. No signal disturbs it."""
    for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(each, signal.SIG_IGN)
    for number, most in ((signal.SIGTERM, 2), (signal.SIGKILL, 1)):
        end = time.monotonic() + most
        told = set()
        while (left := descendants()) and time.monotonic() < end:
            for each in set(left) - told:
                with contextlib.suppress(OSError):
                    os.kill(each, number)
            told.update(left)
            time.sleep(0.02)


def output_of(command):
    """What a command writes, whether it succeeds or not."""
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False).stdout


@contextlib.contextmanager
def under_way(now, first=None):
    """Says every half minute, after `first` seconds to begin with, what is going on, so that a long
    step does not look like one that hangs. `now()` gives the text, or none where nothing is to say."""
    ended = threading.Event()

    def tell():
        pause = PATIENCE if first is None else first
        while not ended.wait(pause):
            text = now()
            if text:
                say(text)
            pause = PATIENCE

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        ended.set()
        teller.join()


def run(command, what, now="", **options):
    """Runs a command whose output is shown only if it fails; `what` then says what that means.
    `now` says what it does, for commands that do not say it themselves."""
    command = list(map(str, command))
    try:
        with under_way(lambda: now and f"{now}: still under way"):
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, errors="replace", check=False, **options)
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


def prepare(given, packages, *build, **options):
    """Runs cmake/prepare.sh: installs packages that are missing (Debian, Ubuntu), and builds."""
    command = ["sh", ROOT / "cmake" / "prepare.sh", *(["--yes"] if given.yes else []),
               given.build.absolute(), " ".join(packages), *build]
    return subprocess.run(list(map(str, command)), check=False, **options)


def install(given, packages):
    """Installs packages that are missing; whether all are there then. Asks first on a terminal."""
    log, began = given.build / "apt.log", time.time()
    with under_way(lambda: log.exists() and log.stat().st_mtime >= began - 1 and
                   f"Installing packages: still under way, see {log}"):
        return prepare(given, packages, stdout=sys.stderr.fileno()).returncode == 0


def need_packages(given, packages):
    """Installs packages that are missing, and ends the program where one stays missing."""
    if packages and not install(given, packages):
        raise SystemExit(1)


def built(given, name, target, packages, *options, source="."):
    """Builds a target in a folder of the driver's own, run/NAME below --build, and gives the folder.
    Says nothing where all is there and up to date."""
    need_packages(given, [*COMPILER, *packages])
    folder = (given.build / "run" / name).absolute()

    with under_way(lambda: f"Building {target} in {folder}, see {folder}.log", MOMENT):
        done = prepare(given, [], source, folder, target, *options, stdout=subprocess.PIPE, text=True,
                       errors="replace")
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise SystemExit(done.returncode)
    return folder


def benchmark(given, target, packages=(), mpi=False):
    """Builds a program of the benchmarks, with MPI where that is asked for or installed: then it has
    ranks in one process as well, and one build is enough."""
    with_mpi = mpi or shutil.which("mpicxx.openmpi")
    folder = built(given, "benchmarks", target, [*(OPEN_MPI if mpi else []), *packages], *RELEASE,
                   "-DOKTOPK_ENABLE_EXAMPLES=OFF",
                   WITH_OPEN_MPI if with_mpi else "-DOKTOPK_ENABLE_MPI=OFF")
    return folder / "benchmarks" / target


@functools.cache
def catalogue():
    """Of each scheme that the sources of oktopk_bench name: whether it is sparse, dense, or dense and
    coded; automatic counts as sparse, since it takes a density. Needs no build."""
    text = (ROOT / "include/oktopk/catalogue/algorithms.hpp").read_text(encoding="utf-8")
    found = re.findall(r'^    (\w+)_scheme(?:<[^{]*>)?\{\s*"(\w+)"', text, re.M)
    return {name: "sparse" if kind == "automatic" else kind for kind, name in found}


def kind_of_scheme(name):
    """Whether a scheme with its options is sparse, dense or coded; None where it is unknown."""
    return catalogue().get(name.partition("(")[0].strip())


@functools.cache
def options_of_schemes():
    """All names that an option of some scheme has in the sources, and those that it had once."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "include/oktopk").rglob("*.hpp")))
    return set(re.findall(r'\b(?:in|in\.choose|visit)\("(\w+)"', text)) | {"local_select", "global_select"}


def check_schemes(names):
    """Refuses names of schemes and of their options that no scheme of the sources has, before
    anything is built; whether an option fits its scheme, oktopk_bench tells."""
    for each in names:
        name, _, options = each.partition("(")
        if kind_of_scheme(each) is None:
            fail(f'there is no algorithm "{name.strip()}"; there are {", ".join(catalogue())}')
        for option in re.findall(r"(\w+)\s*=", options):
            if option not in options_of_schemes() | {"density", "k"}:
                fail(f'no algorithm has an option "{option}"; there are '
                     f'{", ".join(sorted(options_of_schemes()))}')


def density_text(given):
    """The density of the schemes, for people; a scheme may have its own in its text."""
    own = any(re.search(r"\b(k|density)\s*=", name) for name in given.algorithm or [])
    return f"density {given.density:g}" + " unless a scheme names its own" * own


def has_matplotlib():
    """Whether pictures can be drawn."""
    importlib.invalidate_caches()
    return importlib.util.find_spec("matplotlib") is not None


def set_outputs(given, folder, name):
    """Puts table and picture below the folder of builds where the options do not name them. Without
    matplotlib there is no picture; it is installed only where --plot or --yes asks for it."""
    folder = given.build / folder
    asked = given.plot is not False
    if given.csv is None or not asked:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            fail(f"cannot make the folder {folder}: {fault.strerror}; --output names another place")
    given.csv = given.csv or folder / f"{name}.csv"
    given.plot = given.plot if asked else folder / f"{name}.png"
    if given.plot and not has_matplotlib():
        if asked or given.yes:
            install(given, [MATPLOTLIB])
        if not asked and not has_matplotlib():
            say(f"No picture: matplotlib is not installed (Debian: {MATPLOTLIB}; --yes installs it)")
            given.plot = None


def wrote(*paths):
    """Says which files were written."""
    say("Wrote " + ", ".join(str(path) for path in paths if path))


def usable_cores(root="/sys/fs/cgroup"):
    """The cores that this process may use: those that it may run on, or fewer by the quota of its container (cgroup 2)."""
    count = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, AttributeError):
        own = re.search(r"^0::(/.*)$", pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8"), re.M)[1]
        folder = pathlib.Path(root + own)
        for group in (folder, *folder.parents):
            with contextlib.suppress(OSError, ValueError):
                quota, period = map(int, (group / "cpu.max").read_text(encoding="ascii").split())
                count = min(count, -(-quota // period))
    return count


def machine():
    """The cores that this process may use, and the processor."""
    try:
        cpuinfo = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        cpuinfo = ""
    processor = re.search(r"^model name.*?: *(.*)", cpuinfo, re.M)
    cores = usable_cores()
    return f"{cores} core{'s' * (cores > 1)}{f' ({processor[1]})' if processor else ''}"


def note_crowding(ranks):
    """Says so where ranks outnumber the cores."""
    cores = usable_cores()
    if ranks > cores:
        print(f"note: {ranks} ranks share {cores} core{'s' * (cores > 1)}: a millisecond of "
              f"computation of every rank costs {ranks / cores:.3g} here; time on the wire does "
              "not add up", file=sys.stderr)


def headline(title, how=""):
    """Prints what was measured, where and when."""
    print(f"\n{title}; {how}{machine()}, {datetime.date.today()}:\n")
