# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the checks share that run a program as a user would, from outside."""

import csv
import importlib
import os
import pathlib
import re
import shlex
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[1]
SECONDS = int(os.environ.get("OKTOPK_TEST_SECONDS", "120"))  # of a command
VERSION = re.search(r"^project\(oktopk VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text("utf-8"),
                    re.M)[1]


def pytest_addoption(parser):
    parser.addoption("--program", help="the program under test")
    parser.addoption("--launcher", type=shlex.split,
                     help="what starts MPI ranks, up to their number, as in 'mpirun -n'")


class Program:
    """The program under test with one way to start its ranks: in its own process, or with MPI."""

    def __init__(self, path, launcher=None):
        self.path = pathlib.Path(path).resolve()
        self.launcher = launcher

    def start(self, ranks):
        """The command that starts it on so many ranks."""
        if self.launcher is None:
            return [self.path, "--in-process", ranks]
        return [*self.launcher, ranks, self.path]

    def run(self, ranks, *arguments):
        """Runs it, whether it succeeds or not."""
        return run(*self.start(ranks), *arguments)

    def succeed(self, ranks, *arguments):
        """Runs it and gives what it writes."""
        return succeed(*self.start(ranks), *arguments)

    def refuses(self, sentence, ranks, *arguments):
        """It fails, and its only message has this in it."""
        done = self.run(ranks, *arguments)
        said = [line for line in done.stderr.splitlines() if line.startswith(f"{self.path.name}: ")]
        assert done.returncode != 0
        assert len(said) == 1 and sentence in said[0], f"{done.stdout}{done.stderr}"


def run(*command, timeout=SECONDS, **options):
    """Runs a command, whether it succeeds or not."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=timeout,
                          check=False, **options)


def succeed(*command, **options):
    """Runs a command that must succeed, and gives what it writes."""
    done = run(*command, **options)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


def read_rows(path):
    """The rows of a CSV file."""
    with path.open(newline="", encoding="ascii") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def program(request):
    """The program under test; ranks in its own process."""
    return Program(request.config.getoption("--program"))


@pytest.fixture(scope="session")
def mpi_program(request, program):
    """The program under test, with MPI."""
    launcher = request.config.getoption("--launcher")
    if launcher is None:
        pytest.skip("no --launcher")
    return Program(program.path, launcher)


@pytest.fixture
def drivers(monkeypatch):
    """Imports a module of benchmarks/driver by its name."""
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return lambda name: importlib.import_module(f"driver.{name}")


@pytest.fixture(scope="session")
def driver():
    """Runs benchmarks/run.py with arguments; options are those of `subprocess.run`."""
    return lambda *arguments, **options: run("python3", ROOT / "benchmarks" / "run.py", *arguments,
                                             **options)
