# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Starts a program of this folder once for each rank, each behind a link of a chosen rate: the links of examples/torch/adamw.py.

Needs root and iproute2. Everything emulated lives in namespaces of its own, which end with the program."""

import os
import pathlib
import subprocess
import sys
import tempfile

IN_NAMESPACES = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]


def run(rate, ranks, *more):
    """Runs this program as `ranks` processes, with its own arguments, `more`, and --rank R --store FILE, where they meet; ends where
    one of them fails."""
    subprocess.run([*IN_NAMESPACES, sys.executable, __file__, rate, str(ranks), *sys.argv, *more], check=True)


def main(rate, ranks, *command):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples/torch"))
    import adamw  # pylint: disable=import-outside-toplevel  # whose links these are
    with tempfile.TemporaryDirectory() as folder, adamw.links(rate, int(ranks)) as (starts, interface):
        started = [subprocess.Popen([*start, sys.executable, *command, "--rank", str(number), "--store", f"{folder}/store"],
                                    env={**os.environ, "GLOO_SOCKET_IFNAME": interface}) for number, start in enumerate(starts)]
        return max(abs(each.wait()) for each in started)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
