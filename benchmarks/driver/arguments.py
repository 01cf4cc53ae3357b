# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Options that several commands have, and the types of their values."""

import argparse
import math
import os
import pathlib
import re

from . import programs

# As the programs and the catalogue read numbers: to base 10 with a point, zeros in front or not, no sign, no separators.
NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that tells defaults, where there are any."""

    def _get_help_string(self, action):
        has_default = action.default not in (None, False, argparse.SUPPRESS)
        return action.help + (" (default: %(default)s)" if has_default else "")


class Parser(argparse.ArgumentParser):
    """A parser that takes no abbreviations and says what is wrong in one line."""

    def __init__(self, **options):
        super().__init__(allow_abbrev=False, **options)

    def error(self, message):
        self.exit(2, f"{self.prog}: {message}\n")


def count(text, least=0):
    """A whole number of at least 0: its digits, or one with an exponent, as a double holds it exactly."""
    if re.fullmatch("[0-9]+", text):
        number = int(text)
    else:
        number = float(text) if re.fullmatch(NUMBER, text) and "e" in text.lower() else math.nan
    if not (number >= least and number % 1 == 0 and (isinstance(number, int) or number <= 2**53)):
        raise argparse.ArgumentTypeError(f'must be a whole number of at least {least}, not "{text}"')
    return int(number)


def whole(text):
    """A whole number of at least 1."""
    return count(text, 1)


def wholes(text):
    """Whole numbers of at least 1, separated by commas."""
    return [whole(each) for each in text.split(",")]


def share(text):
    """A number in (0, 1]."""
    if re.fullmatch(NUMBER, text) and 0 < float(text) <= 1:
        return float(text)
    raise argparse.ArgumentTypeError(f'must be over 0 and at most 1, not "{text}"')


def duration(text):
    """A time, as it was given."""
    if not re.fullmatch(NUMBER, text):
        raise argparse.ArgumentTypeError(f'must be a number, not "{text}"')
    return text


def rate(text):
    """The rate of a link, as in 100mbit or 2.5gbit."""
    if not re.fullmatch(f"({NUMBER})[kmg]bit", text) or bits_per_second(text) == 0:
        raise argparse.ArgumentTypeError(
            f'must be a rate such as 100mbit, 1gbit or 10gbit, not "{text}"')
    return text


def bits_per_second(text):
    """What a rate such as 100mbit is in bits per second."""
    return float(text[:-4]) * UNITS[text[-4]]


def rate_text(text):
    """A rate for people: 1gbit is 1 Gbit/s."""
    return f"{text[:-4]} {text[-4].replace('m', 'M').replace('g', 'G')}bit/s"


def names(text):
    """Names separated by commas; commas inside parentheses belong to a name."""
    depth, parts = 0, [""]
    for each in text:
        depth += (each == "(") - (each == ")")
        if each == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += each
    return [each.strip() for each in parts if each.strip()]


def program(text):
    """The path of a program."""
    path = pathlib.Path(text).absolute()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise argparse.ArgumentTypeError(f'"{text}" is no program')
    return path


def output(text):
    """A file that can be written; told at once, not after minutes of measuring. "none" is None."""
    if text == "none":
        return None
    path = pathlib.Path(text)
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK) or (
            path.exists() and not os.access(path, os.W_OK)):
        raise argparse.ArgumentTypeError(f'cannot write a file "{text}"')
    return path


def picture(text):
    """A file for a picture, in a format that is known before anything is measured."""
    path = output(text)
    if path is not None and path.suffix.lower() not in PICTURES:
        raise argparse.ArgumentTypeError(f'"{text}" must end in one of {", ".join(PICTURES)}')
    return path


def positive(text):
    """A finite number over 0."""
    if not re.fullmatch(NUMBER, text) or not 0 < float(text) < math.inf:
        raise argparse.ArgumentTypeError(f'must be a number over 0, not "{text}"')
    return float(text)


# Endings of pictures that matplotlib writes without more packages.
PICTURES = (".png", ".svg", ".pdf", ".eps", ".ps", ".jpg", ".jpeg")

# What several commands take. A command names those that it takes, and their defaults.
COMMON = {
    "--ranks": (whole, "P", "number of ranks"),
    "--length": (whole, "N", "length of the gradient"),
    "--density": (share, "D", "share of the entries to select, in (0, 1]"),
    "--algorithm": (names, "LIST", "schemes, separated by commas, with their options in "
                    "parentheses: 'ring_chunked, ok_topk(tau=32)'"),
    "--steps": (whole, "S", "iterations to measure"),
    "--warmup": (count, "W", "iterations before these that are not measured"),
    "--rounds": (whole, "R", "measure all by turns R times: what else the machine does is spread"),
    "--deadline": (duration, "SECONDS", "how long a rank waits for the others at most, "
                   "before all end with an error; 0: for ever"),
    "--csv": (output, "FILE", "write the figures to this file"),
    "--plot": (picture, "FILE", "draw a picture, PNG, SVG or PDF by its ending; none for none"),
    "--build": (pathlib.Path, "DIR", "folder for builds, tables and pictures"),
    "--bench": (program, "PATH", "the program oktopk_bench"),
}
ALIASES = {"--algorithm": ["--algorithms"], "--build": ["--output"]}


BUILDS = """
Builds what it needs below --build, and installs what is missing on Debian and Ubuntu; on a terminal
it asks first, unless --yes says so. Table and picture go to {folder}/ there, or where --csv and
--plot say. What follows "--" goes to {program} as it is.
"""


def add_yes(parser):
    """Adds the option of commands that may install packages."""
    parser.add_argument("--yes", action="store_true",
                        help="install missing packages without asking (Debian, Ubuntu; as root)")


def add_building(parser, folder, program, *options, **defaults):
    """Adds options of a command that builds a program and leaves a table and a picture in a folder."""
    add(parser, *options, "--csv", "--plot", "--build", plot=False, build=programs.builds(), passed_on=[], **defaults)
    add_yes(parser)
    parser.description += BUILDS.format(folder=folder, program=program)


def add(parser, *options, **defaults):
    """Adds options that several commands have."""
    for option in options:
        kind, metavar, text = COMMON[option]
        parser.add_argument(option, *ALIASES.get(option, []), type=kind, metavar=metavar, help=text)
    parser.set_defaults(**defaults)


def deadline(given):
    """The option --deadline for the program that is run, where it was given."""
    return [] if given.deadline is None else ["--deadline", given.deadline]
