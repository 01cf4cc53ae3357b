# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table and the picture of a CSV file that another command wrote."""

import csv
import signal

from . import arguments, pictures, programs, results, tables


def add_options(parser):
    """The options of `show`."""
    parser.add_argument("file", help="the CSV file")
    parser.add_argument("--rate", type=arguments.rate, metavar="RATE",
                        help="of the links, for the time that words take in the table of network")
    parser.add_argument("--title", default="", help="of the picture")
    parser.add_argument("--note", default="", help="below it: how and on what it was measured")
    arguments.add(parser, "--plot", default={})


def run(given):
    """Prints the table, and draws the picture where one is asked for."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # "| head" is no fault
    try:
        rows = results.read(given.file)
    except OSError as fault:
        programs.fail(f"cannot read {given.file}: {fault.strerror}")
    except (UnicodeDecodeError, csv.Error):
        programs.fail(f"{given.file} is no file of results")
    if any(None in row or None in row.values() for row in rows):
        programs.fail(f"{given.file} has rows that are not as long as its first line")
    kind = tables.kind_of(rows)
    if kind is None:
        programs.fail(f"{given.file} is no file of results")
    print(getattr(tables, kind)(rows, *([given.rate] if kind == "steps" else [])))
    if given.plot:
        pictures.draw(rows, given.plot, given.title, given.note)
