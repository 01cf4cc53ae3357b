# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""No folder of the library includes one that is not below it in the drawing of docs/tour.md. Argument: the project's root."""

import pathlib
import re
import sys


def floors_in(page):
    """The floors of the drawing below the heading "The floors", from the top down, each a list of folders."""
    drawing = re.search(r"^## The floors\n.*?^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert drawing, "docs/tour.md has no drawing below \"## The floors\""
    lines = (re.split(r"\s{2,}", line.strip())[0] for line in drawing.group(1).splitlines() if line.strip())
    return [[folder.rstrip("/") for folder in re.split(r",\s*", line)] for line in lines]


def folder_of(header):
    """The folder of a header, whole, below include/oktopk; "." for a front door."""
    return pathlib.PurePosixPath(header).parent.as_posix()


def faults_of(includes, floors):
    """Sentences about arrows that run upward or sideways; `includes` maps each header to those that it includes."""
    height_of = {folder: height for height, floor in enumerate(reversed(floors)) for folder in floor}
    used = {folder_of(header) for header in includes}
    sentences = [f"docs/tour.md draws the folder {folder}, which has no header" for folder in height_of if folder not in used]
    for header, others in sorted(includes.items()):
        own = folder_of(header)
        if own not in height_of:
            sentences.append(f"{header}: docs/tour.md does not draw the folder {own}")
            continue
        for other in others:
            its = folder_of(other)
            if its != own and height_of.get(its, -1) >= height_of[own]:
                sentences.append(f"{header} includes {other}, which is not on a lower floor")
    return sentences


def self_test():
    """The check sees an arrow upward, one sideways, one between nested folders and a folder without a floor, and no other."""
    floors = floors_in("## The floors\n\ntext\n```text\n.    doors\na, b   two\na/parts   parts\ncore/\n```\n")
    assert floors == [["."], ["a", "b"], ["a/parts"], ["core"]]
    right = {"a/x.hpp": ["core/y.hpp", "a/z.hpp", "a/parts/p.hpp"], "s.hpp": ["b/x.hpp"], "b/x.hpp": [], "core/y.hpp": [],
             "a/parts/p.hpp": ["core/y.hpp"]}
    assert faults_of(right, floors) == []
    for header, other in [("core/y.hpp", "a/x.hpp"), ("b/x.hpp", "a/x.hpp"), ("a/parts/p.hpp", "a/x.hpp")]:
        assert len(faults_of({**right, header: [other]}, floors)) == 1, (header, other)
    assert len(faults_of({**right, "cellar/c.hpp": []}, floors)) == 1
    assert len(faults_of({**right, "a/x.hpp": ["cellar/c.hpp"]}, floors)) == 0  # named by the folder's own line
    del right["b/x.hpp"]
    assert len(faults_of({**right, "s.hpp": []}, floors)) == 1


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    library = root / "include" / "oktopk"
    includes = {
        path.relative_to(library).as_posix(): re.findall(r"#include <oktopk/([^>]+)>", path.read_text(encoding="utf-8"))
        for path in library.rglob("*.hpp")
    }
    missing = [f"{header} includes {other}, which is not there"
               for header, used in sorted(includes.items()) for other in used if other not in includes]
    faults = missing + faults_of(includes, floors_in((root / "docs" / "tour.md").read_text(encoding="utf-8")))
    print(f"{len(includes)} headers, {sum(map(len, includes.values()))} includes")
    if faults or not includes:
        sys.exit("\n".join(faults) or f"no headers below {library}")


main()
