#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measures the schemes of the library: one command line for all benchmarks, see --help."""

import importlib.util
import os
import signal
import sys

# The Python that comes first may be another than the one that packages are installed for.
SYSTEM = "/usr/bin/python3"
if not importlib.util.find_spec("matplotlib") and "OKTOPK_RUN" not in os.environ:
    if os.access(SYSTEM, os.X_OK):
        os.execve(SYSTEM, [SYSTEM, *sys.argv], {**os.environ, "OKTOPK_RUN": "again"})
sys.dont_write_bytecode = True  # the checkout may be read-only
os.environ["LC_ALL"] = "C"  # of programs that are run: what they print is read here

from driver import (changing, compare, formats, grid, network, peers, programs, selection_accuracy,  # noqa: E402
                    show, simulated, torch, training)
from driver.arguments import Help, Parser  # noqa: E402

COMMANDS = {
    "compare": compare,
    "network": network,
    "simulated": simulated,
    "training": training,
    "torch": torch,
    "peers": peers,
    "changing": changing,
    "grid": grid,
    "selection-accuracy": selection_accuracy,
    "formats": formats,
    "show": show,
}


def end_by(number, _):
    """Ends what is under way, so that nothing stays behind, and the program."""
    programs.end_all()
    sys.exit(128 + number)


def main():
    """Reads the command line and runs the command that it names."""
    own, passed_on = sys.argv[1:], []
    if "--" in own:
        own, passed_on = own[:own.index("--")], own[own.index("--") + 1:]
    parser = Parser(prog="run.py", description=__doc__)
    parser.add_argument("--version", action="version", version=f"run.py {programs.version()}",
                        help="print the version")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in COMMANDS.items():
        command = commands.add_parser(name, help=module.__doc__.splitlines()[0],
                                      description=module.__doc__, formatter_class=Help)
        module.add_options(command)
        command.set_defaults(run=module.run, name=name)
    given = parser.parse_args(own)
    if passed_on and not hasattr(given, "passed_on"):
        parser.error(f"{given.name} passes nothing on, but there is something after \"--\"")
    given.passed_on = passed_on
    programs.keep_orphans()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:  # nohup
            signal.signal(number, end_by)
    try:
        given.run(given)
        sys.stdout.flush()
    except OSError as fault:  # a full disk, most of all
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would complain once more
        programs.fail(fault)


if __name__ == "__main__":
    main()
