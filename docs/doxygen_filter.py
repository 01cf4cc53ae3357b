# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Prints a file as Doxygen 1.9.4 shall read it. Argument: its path from the root of the project.

What a header declares goes into one of two groups, which the page Modules lists: what programs use, and what the
library and policies are made of. Private parts are left out: Doxygen links to nested classes there that it does not
show.

In Markdown, Doxygen does not know the anchors that hosts of repositories give to headings, and mixes up files of one
name. So each heading gets an explicit anchor, and each link between pages leads to one. A link to a file that is no
page keeps its text alone. A link that leads nowhere stays, and Doxygen reports it.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ("docs", "examples", "benchmarks", "packaging")
# What programs use: the front doors, algorithms, training, what watches a communicator, errors and states.
FOR_USERS = re.compile(
    r"[^/]*|training/.*|catalogue/(catalogue|any_allreduce)|core/(call_statistics|checkpoint|error|sparse|version)"
    r"|algorithm/(concept|dense|gaussian_k|gtopk|ok_topk|other_ranks|topk_a|topk_dsa|paper/.*)"
    r"|comm/(checked|counted|in_process|revocation|self|threads|time_limit)|(mpi|nccl|torch)/[^/]*communicator")
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


def print_header(header):
    """Prints a header with its declarations in their group; the lines keep their numbers."""
    name = header.relative_to(ROOT / "include/oktopk").with_suffix("").as_posix()
    group = "for_users For users" if FOR_USERS.fullmatch(name) else "for_authors For authors of policies"
    text = header.read_text(encoding="utf-8")
    private = re.compile(r"^private:\n.*?(?=^(?:\};|public:|protected:))", re.MULTILINE | re.DOTALL)
    text = private.sub(lambda match: "\n" * match[0].count("\n"), text)
    opened = rf"namespace oktopk {{ /** @addtogroup {group}\n@{{ */ "
    text = re.sub(r"^namespace oktopk \{\n", opened, text, flags=re.MULTILINE)
    print(re.sub(r"^\} // namespace oktopk$", r"/** @} */ \g<0>", text, flags=re.MULTILINE), end="")


def print_page(page):
    """Prints a page of Markdown."""
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


path = (ROOT / sys.argv[1]).resolve()
if path.suffix == ".hpp":
    print_header(path)
else:
    print_page(path)
