# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""No folder of the library includes one that lies above it. Argument: the root of the project."""

import pathlib
import re
import sys

# From the top floor down. Folders on one floor do not include each other.
FLOORS = [
    ["."],  # the front doors: what a user includes
    ["training", "torch"],  # parts of error_feedback.hpp, bucketed.hpp, the optimizers, and of torch.hpp
    ["catalogue"],
    ["algorithm"],
    ["exchange"],
    ["partition", "dense"],
    ["select"],
    ["sparse"],
    ["format", "codec"],
    ["mpi"],  # parts of mpi.hpp
    ["comm"],
    ["core"],
]


def folder_of(header):
    """The folder of a header below include/oktopk: the first part of its path, or "." for a front door."""
    parts = pathlib.PurePosixPath(header).parts
    return parts[0] if len(parts) > 1 else "."


def faults_of(includes):
    """Sentences about arrows that run upward; `includes` maps each header to those that it includes."""
    floor_of = {folder: height for height, floor in enumerate(reversed(FLOORS)) for folder in floor}
    sentences = []
    for header, used in sorted(includes.items()):
        own = folder_of(header)
        if own not in floor_of:
            sentences.append(f"{header}: the folder {own} is on no floor; name its floor in tests/style/check_floors.py")
            continue
        for other in used:
            theirs = folder_of(other)
            if theirs == own:
                continue
            if floor_of.get(theirs, -1) > floor_of[own]:
                sentences.append(f"{header} includes {other}, which lies above it")
            elif theirs != own and floor_of.get(theirs) == floor_of[own]:
                sentences.append(f"{header} includes {other}, which lies on its own floor")
    return sentences


def self_test():
    """The check sees an arrow upward, one sideways and a folder without a floor, and no other."""
    assert faults_of({"algorithm/a.hpp": ["core/b.hpp", "algorithm/c.hpp"], "sgd.hpp": ["algorithm/a.hpp"]}) == []
    assert len(faults_of({"core/b.hpp": ["comm/a.hpp"]})) == 1
    assert len(faults_of({"format/b.hpp": ["codec/a.hpp"]})) == 1
    assert len(faults_of({"cellar/b.hpp": []})) == 1


def main():
    self_test()
    root = pathlib.Path(sys.argv[1]) / "include" / "oktopk"
    includes = {
        path.relative_to(root).as_posix(): re.findall(r"#include <oktopk/([^>]+)>", path.read_text(encoding="utf-8"))
        for path in root.rglob("*.hpp")
    }
    missing = [f"{header} includes {other}, which is not there"
               for header, used in sorted(includes.items()) for other in used if other not in includes]
    faults = missing + faults_of(includes)
    print(f"{len(includes)} headers, {sum(map(len, includes.values()))} includes")
    if faults or not includes:
        sys.exit("\n".join(faults) or f"no headers below {root}")


main()
