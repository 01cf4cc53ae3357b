# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a Markdown file as Doxygen 1.9.4 understands it. Argument: its path from the root of the project.

Doxygen does not know the anchors that hosts of repositories give to headings, and mixes up files of one name. So each
heading gets an explicit anchor, and each link between pages leads to one. A link to a file that is no page keeps its
text alone. A link that leads nowhere stays, and Doxygen reports it.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ("docs", "examples", "benchmarks", "packaging")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s#]*)(?:#([^()\s]*))?\)")


def slug(title):
    """The anchor that a host of repositories gives to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchor(page, heading=""):
    """Doxygen's name of a heading of a page, or of the page."""
    name = "page_" + re.sub(r"\W", "_", page.relative_to(ROOT).as_posix())
    return f"{name}_{heading}" if heading else name


def is_page(path):
    """Whether Doxygen is given this file."""
    if path.suffix != ".md" or not path.is_file() or ROOT not in path.parents:
        return False
    return path.parent == ROOT or path.relative_to(ROOT).parts[0] in PAGES


def link(match, page):
    """A link of a page as Doxygen wants it."""
    image, text, target, heading = match.groups()
    if image:
        picture = (page.parent / target).resolve()
        return f"![{text}]({picture.relative_to(ROOT)})" if picture.is_file() else match[0]
    if re.match(r"[a-z]+:", target):
        return match[0]
    other = (page.parent / target).resolve() if target else page
    if is_page(other):
        return f"[{text}](#{anchor(other, heading or '')})"
    is_outside = ROOT not in other.parents  # a page of the host, as ../../issues
    return text if is_outside or other.exists() else f"[{text}](#{target}_is_missing)"


def main():
    page = (ROOT / sys.argv[1]).resolve()
    seen = {}
    fenced = False
    is_first = True
    for line in page.read_text(encoding="utf-8").splitlines():
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
        elif not fenced:
            if line.startswith("<!-- SPDX"):
                line = ""
            line = LINK.sub(lambda match: link(match, page), line)
            found = re.match(r"(#+) +(.*?) *$", line)
            if found:
                name = slug(found[2])
                seen[name] = seen.get(name, -1) + 1
                name += f"-{seen[name]}" if seen[name] else ""
                line += f" {{#{anchor(page, '' if is_first else name)}}}"
                is_first = False
        print(line)


main()
