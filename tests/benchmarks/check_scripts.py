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
from conftest import ROOT, SECONDS, VERSION

# apt-get that makes the sign of each package that it is to install, and an administrator.
FAKES = {"apt-get": 'for each; do case $each in pack*) : >"$SIGNS/$each" ;; esac; done',
         "id": "echo 0"}
INSTALL = '. "$0/cmake/setup.sh"; sign_of() { echo "$SIGNS/$1"; }; choose_builds "$BUILDS"; '


class Shell:
    """Runs what a script does with packages one and two, where the first is installed already."""

    def __init__(self, folder):
        self.folder = folder
        self.signs = folder / "signs"
        for each in ("bin", "signs"):
            (folder / each).mkdir()
        for name, text in FAKES.items():
            (folder / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / "bin" / name).chmod(0o755)
        (self.signs / "pack1").touch()

    def install(self, stdin, before=""):
        environment = {**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
                       "SIGNS": str(self.signs), "BUILDS": str(self.folder / "builds")}
        script = f"{before} {INSTALL} install_missing pack1 pack2; echo gone on"
        command = ["sh", "-euc", script, ROOT]
        return subprocess.run(command, stdin=stdin, env=environment, capture_output=True, text=True,
                              timeout=SECONDS, check=False, cwd=self.folder)

    def install_on_terminal(self, answer, before=""):
        """With a terminal as standard input, on which the user has typed this."""
        try:
            terminal, inside = pty.openpty()
        except OSError:
            pytest.skip("this system gives out no terminals")
        try:
            os.write(terminal, answer.encode())
            return self.install(inside, before)
        finally:
            os.close(terminal)
            os.close(inside)

    def installed(self):
        return (self.signs / "pack2").exists()


@pytest.fixture
def shell(tmp_path):
    return Shell(tmp_path)


@pytest.mark.parametrize("answer", ["\n", "n\n", "no\n", "yes please\n", "\x04"])
def test_terminal_refuses(shell, answer):
    done = shell.install_on_terminal(answer)
    assert done.returncode != 0 and not shell.installed()
    assert "These packages are missing: pack2\nInstall them with apt-get? [y/N]" in done.stderr
    assert "these packages are missing, and --yes installs them: pack2" in done.stderr
    assert "gone on" not in done.stdout


@pytest.mark.parametrize("answer", ["y\n", "Y\n", "yes\n"])
def test_terminal_agrees(shell, answer):
    done = shell.install_on_terminal(answer)
    assert done.returncode == 0 and shell.installed(), done.stderr
    assert "gone on" in done.stdout


def test_yes_asks_nothing(shell):
    done = shell.install_on_terminal("n\n", "assume_yes=yes;")
    assert done.returncode == 0 and shell.installed(), done.stderr
    assert "[y/N]" not in done.stderr


def test_no_terminal_installs_and_says_so(shell):
    """As on a bare machine, in a pipeline, with nobody to ask."""
    done = shell.install(subprocess.DEVNULL)
    assert done.returncode == 0 and shell.installed(), done.stderr
    assert "Nobody to ask (standard input is no terminal)" in done.stdout
    assert "Installing with apt-get: pack2" in done.stdout


def test_nothing_missing_asks_nothing(shell):
    (shell.signs / "pack2").touch()
    done = shell.install_on_terminal("n\n")
    assert done.returncode == 0 and "[y/N]" not in done.stderr
    assert "All packages needed are there" in done.stdout


@pytest.mark.parametrize("script", ["tests/run.sh", "cmake/prepare.sh", "examples/run.sh"])
def test_scripts_take_yes(script):
    """Each script sets what may_install looks at."""
    assert "assume_yes=yes" in (ROOT / script).read_text(encoding="utf-8")


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
    subprocess.run(["chmod", "-R", "a+rX,a-w", checkout], check=True, timeout=SECONDS)
    folder.chmod(0o755)
    if os.geteuid() == 0:
        as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        if subprocess.run([*as_user, "true"], capture_output=True, check=False, timeout=SECONDS).returncode != 0:
            pytest.skip("another user can run nothing here")
    yield checkout, elsewhere, as_user
    subprocess.run(["chmod", "-R", "u+w", checkout], check=True, timeout=SECONDS)
    shutil.rmtree(folder)


def run_there(as_user, *command, cwd, **variables):
    return subprocess.run([*as_user, *map(str, command)], cwd=cwd, capture_output=True, text=True,
                          env={**os.environ, **variables}, timeout=SECONDS, check=False,
                          stdin=subprocess.DEVNULL)


CHOOSE = 'called_from=$(pwd); cd "$0"; . cmake/setup.sh; choose_builds "$1"; echo "in $builds"'


def test_read_only_checkout_builds_below_the_current_folder(read_only):
    checkout, elsewhere, as_user = read_only
    done = run_there(as_user, "sh", "-euc", CHOOSE, checkout, "", cwd=elsewhere)
    assert done.stdout.endswith(f"in {elsewhere}/build\n"), done.stderr
    assert (elsewhere / "build").is_dir()
    done = run_there(as_user, "sh", "-euc", CHOOSE, checkout, "deep/place", cwd=elsewhere)
    assert done.stdout.endswith(f"in {elsewhere}/deep/place\n"), done.stderr
    done = run_there(as_user, "sh", "-euc", CHOOSE, checkout, "", cwd=checkout)
    assert done.returncode != 0 and "name a folder with --build" in done.stderr


def test_writable_checkout_builds_in_itself(tmp_path):
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
    done = run_there(as_user, *measure, "--output", "results", cwd=elsewhere)
    assert done.returncode == 0, done.stderr
    assert (elsewhere / "results" / "compare" / "schemes.csv").is_file()
    done = run_there(as_user, *measure, cwd=checkout)
    assert done.returncode != 0 and "--output names another place" in done.stderr
    assert "Traceback" not in done.stderr
