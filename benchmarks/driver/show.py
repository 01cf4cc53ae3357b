# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table and the picture of CSV files of one kind that another command wrote."""

import csv
import signal

from . import arguments, pictures, programs, results, tables


def add_options(parser):
    """The options of `show`."""
    parser.add_argument("files", nargs="+", metavar="FILE", help="the CSV files")
    parser.add_argument("--title", default="", help="of the picture")
    parser.add_argument("--note", default="", help="below it: how and on what it was measured")
    arguments.add(parser, "--plot", default={})
    parser.add_argument("--shown", type=arguments.names, metavar="LIST", help="the schemes in the "
                        "picture of network, beside the best dense allreduce and MPI's own choice "
                        "(default: all)")


def run(given):
    """Prints the table, and draws the picture where one is asked for."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # "| head" is no fault
    rows = [row for file in given.files for row in rows_of(file)]
    kind = tables.kind_of(rows)
    if any(tables.kind_of([row]) != kind for row in rows):
        programs.fail("the files are of several kinds")
    if given.shown and kind != "steps":
        programs.fail("--shown is for files of network")
    for name in given.shown or []:
        if name not in results.grouped(rows):
            programs.fail(f'--shown: the files have no scheme "{name}"')
    print(getattr(tables, kind)(rows))
    if given.plot:
        pictures.draw(rows, given.plot, given.title, given.note,
                      **({"shown": given.shown} if given.shown else {}))


def report(given, rows, title, picture, note, how="", table=None):
    """Prints the table of a command's rows, and writes them and their picture to its files."""
    programs.headline(title, how)
    print(table or getattr(tables, tables.kind_of(rows))(rows))
    results.write(given.csv, rows)
    if given.plot:
        pictures.draw(results.read(given.csv), given.plot, picture, note)
    programs.wrote(given.csv, getattr(given, "rows", None), given.plot)


def rows_of(file):
    """The rows of a file of results."""
    try:
        rows = results.read(file)
    except OSError as fault:
        programs.fail(f"cannot read {file}: {fault.strerror}")
    except (UnicodeDecodeError, csv.Error):
        programs.fail(f"{file} is no file of results")
    if any(None in row or None in row.values() for row in rows):
        programs.fail(f"{file} has rows that are not as long as its first line")
    command = tables.command_of(rows)
    if command:
        programs.fail(f"{file} is a file of {command}: run.py {command} --part show has its tables")
    if tables.kind_of(rows) is None:
        programs.fail(f"{file} is no file of results")
    return rows
