# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads, sums up and writes CSV files of results."""

import csv
import io
import os
import pathlib
import statistics


def read(path):
    """The rows of a CSV file."""
    with open(path, newline="", encoding="utf-8-sig") as file:  # Excel writes a byte order mark
        return list(csv.DictReader(file))


def write(path, rows):
    """Writes rows, all with the same columns, as a CSV file."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, text.getvalue())


def write_text(path, text):
    """Writes a file so that a full disk or an interruption leaves the old one or the new one, whole."""
    path = pathlib.Path(os.path.realpath(path))  # a link stays
    part = path if path.exists() and not path.is_file() else path.with_name(path.name + ".part")  # a pipe, or a terminal
    try:
        with open(part, "w", newline="", encoding="utf-8") as file:
            file.write(text)
        if part != path:
            os.replace(part, path)
    except BaseException:
        if part != path:
            part.unlink(missing_ok=True)
        raise


def grouped(rows, column="algorithm"):
    """The rows of each scheme, in the order of the file."""
    groups = {}
    for row in rows:
        groups.setdefault(row[column], []).append(row)
    return groups


def column(rows, name):
    """The values of a column as numbers."""
    return [float(row[name]) for row in rows]


def median(rows, name):
    """The median of a column."""
    return statistics.median(column(rows, name))


def spread(rows, name, beside=0):
    """The interquartile range of a column over the sum of its median and `beside`; 0 of one row."""
    values = column(rows, name)
    if len(values) < 2:
        return 0.0
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return (high - low) / (middle + beside) if middle + beside > 0 else 0.0


def mean(rows, name):
    """The mean of a column."""
    return statistics.fmean(column(rows, name))


def most(rows, *names):
    """The largest value in columns."""
    return max(value for name in names for value in column(rows, name))
