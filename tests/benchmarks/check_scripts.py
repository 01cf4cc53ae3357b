# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks cmake/setup.sh, which scripts share: when it installs packages, and where it builds."""

import os
import pathlib
import pty
import shutil
import subprocess
import tempfile

import pytest
from conftest import ROOT, VERSION, run, succeed

# apt-get that makes the sign of each package that it is to install, and an administrator.
FAKES = {"apt-get": 'for each; do case $each in pack*) : >"$SIGNS/$each" ;; esac; done',
         "id": "echo 0"}
INSTALL = """. "$0/cmake/setup.sh"; sign_of() { echo "$SIGNS/$1"; }; choose_builds "$BUILDS"
install_missing pack1 pack2; echo gone on"""
REFUSED = ["These packages are missing: pack2\nInstall them with apt-get? [y/N]",
           "these packages are missing, and --yes installs them: pack2"]


@pytest.mark.parametrize("typed, before, there, goes_on, said, unsaid", [
    # On a terminal it installs where the user says yes.
    *((answer, "", False, False, REFUSED, "gone on") for answer in ("\n", "n\n", "no\n", "yes please\n", "\x04")),
    *((answer, "", False, True, ["[y/N]"], REFUSED[1]) for answer in ("y\n", "Y\n", "yes\n")),
    ("n\n", "assume_yes=yes;", False, True, ["Installing with apt-get: pack2"], "[y/N]"),
    # As on a bare machine, in a pipeline, with nobody to ask.
    (None, "", False, True, ["Nobody to ask (standard input is no terminal)", "apt-get: pack2"], "[y/N]"),
    ("n\n", "", True, True, ["All packages needed are there"], "[y/N]"),
])
def test_installs_what_is_missing(tmp_path, typed, before, there, goes_on, said, unsaid):
    """Of packages one and two, where the first is installed already, with this typed on a terminal, or without one."""
    signs, programs = tmp_path / "signs", tmp_path / "bin"
    for folder in (signs, programs):
        folder.mkdir()
    for name, text in FAKES.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    for name in ("pack1", "pack2") if there else ("pack1",):
        (signs / name).touch()
    stdin = subprocess.DEVNULL
    if typed is not None:
        try:
            terminal, stdin = pty.openpty()
        except OSError as error:
            pytest.skip(f"no terminal can be made here: {error}")
        os.write(terminal, typed.encode())
    done = run_there([], "sh", "-euc", before + INSTALL, ROOT, cwd=tmp_path, stdin=stdin,
                     PATH=f"{programs}:{os.environ['PATH']}", SIGNS=str(signs), BUILDS=str(tmp_path / "builds"))
    text = done.stdout + done.stderr
    assert (done.returncode == 0) == goes_on == (signs / "pack2").exists() == ("gone on" in text), text
    assert all(each in text for each in said) and unsaid not in text


@pytest.mark.parametrize("script", ["tests/run.sh", "cmake/prepare.sh", "examples/run.sh"])
def test_scripts_take_yes(script):
    """Each script sets what may_install looks at."""
    assert "assume_yes=yes" in (ROOT / script).read_text(encoding="utf-8")


def test_benchmarks_are_configured_alone(tmp_path):
    """As run.py does it, without the examples and the tests: what the benchmarks link is there."""
    succeed("cmake", "-G", "Ninja", "-S", ROOT, "-B", tmp_path, "-DOKTOPK_ENABLE_BENCHMARKS=ON",
            "-DOKTOPK_ENABLE_MPI=OFF", "-DOKTOPK_ENABLE_TORCH=OFF")


# --- where it builds ------------------------------------------------------------------------------


@pytest.fixture
def read_only():
    """A checkout that its user may only read, another folder, and how a command becomes theirs."""
    folder = pathlib.Path(tempfile.mkdtemp())
    checkout, elsewhere = folder / "checkout", folder / "elsewhere"
    as_user = []
    for each in ("cmake", "benchmarks/driver", "benchmarks/network/results", "include/oktopk"):
        shutil.copytree(ROOT / each, checkout / each, ignore=shutil.ignore_patterns("*.png"))
    for each in ("CMakeLists.txt", "benchmarks/run.py", "tests/run.sh"):
        (checkout / each).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / each, checkout / each)
    elsewhere.mkdir()
    elsewhere.chmod(0o777)
    succeed("chmod", "-R", "a+rX,a-w", checkout)
    folder.chmod(0o755)
    if os.geteuid() == 0:
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if run(*as_user, "true").returncode != 0:
            pytest.skip("another user can run nothing here")
    yield checkout, elsewhere, as_user
    succeed("chmod", "-R", "u+w", checkout)
    shutil.rmtree(folder)


def run_there(as_user, *command, cwd, stdin=subprocess.DEVNULL, **variables):
    return run(*as_user, *command, cwd=cwd, env={**os.environ, **variables}, stdin=stdin)


CHOOSE = 'called_from=$(pwd); cd "$0"; . cmake/setup.sh; choose_builds "$1"; echo "in $builds"'


def test_where_it_builds(read_only, tmp_path):
    """In the checkout, in a folder that is named, or, where the checkout is read-only, below the current folder."""
    checkout, elsewhere, as_user = read_only
    for folder, place in (("", "build"), ("deep/place", "deep/place")):
        done = run_there(as_user, "sh", "-euc", CHOOSE, checkout, folder, cwd=elsewhere)
        assert done.stdout.endswith(f"in {elsewhere / place}\n") and (elsewhere / place).is_dir(), done.stderr
    done = run_there(as_user, "sh", "-euc", CHOOSE, checkout, "", cwd=checkout)
    assert done.returncode != 0 and "name a folder with --build" in done.stderr
    shutil.copytree(ROOT / "cmake", tmp_path / "cmake")
    done = run_there([], "sh", "-euc", CHOOSE, tmp_path, "", cwd="/")
    assert done.stdout == "in build\n" and (tmp_path / "build").is_dir()


def test_driver_in_a_read_only_checkout(read_only, program):
    checkout, elsewhere, as_user = read_only
    bench = elsewhere / "oktopk_bench"
    shutil.copy(program.path, bench)
    driver = ["/usr/bin/env", "python3", checkout / "benchmarks" / "run.py"]
    if run_there(as_user, *driver, "--version", cwd=elsewhere).stdout != f"run.py {VERSION}\n":
        pytest.skip("no python3 for another user")
    measure = [*driver, "compare", "--bench", bench, "--ranks", 2, "--length", 1000, "--steps", 2,
               "--algorithm", "dense,ok_topk", "--plot", "none"]
    done = run_there(as_user, *measure, cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "build" / "compare" / "schemes.csv").is_file()
    done = run_there(as_user, *measure, cwd=checkout)
    assert done.returncode != 0 and "--output names another place" in done.stderr
    assert "Traceback" not in done.stderr
