# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The table below "What a policy may offer" in docs/extending.md has the public members of all bases of models, and no
others. Such a base is a `struct NAME_base` in namespace oktopk. Argument: the project's root."""

import pathlib
import re
import sys

STRUCT = re.compile(r"^struct (\w+_base|without_options)(?: : (?:detail::)?(\w+))? \{\n(.*?)^\};", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(r"^  (?! |using |///|friend )[^\n(={]*?(\w+)\s*(?:\(|=|\{)", re.MULTILINE)


def bases_in(headers):
    """The public members of each base, those of its own base included."""
    found = {name: (base, set(MEMBER.findall(body.split("\nprivate:")[0])))
             for text in headers for name, base, body in STRUCT.findall(text)}

    def all_of(name):
        base, own = found.get(name, ("", set()))
        return own | (all_of(base) if base else set())

    return {name: all_of(name) for name in found if name.endswith("_base")}


def table_in(page):
    """The members of each base in the table, a base in the first cell or in one above it."""
    part = re.search(r"^## What a policy may offer\n(.*?)^## ", page, re.DOTALL | re.MULTILINE)
    assert part, "docs/extending.md has no part \"What a policy may offer\""
    listed, base = {}, None
    for first, members in re.findall(r"^\| (?:`(\w+)` )?\| ((?:`\w+`(?:, )?)+) \|", part.group(1), re.MULTILINE):
        base = first or base
        listed.setdefault(base, set()).update(re.findall(r"`(\w+)`", members))
    return listed


def faults_of(bases, listed):
    """Sentences about members that only one of the two has."""
    return [f"{name}: {member} is only in {where}"
            for name in sorted(bases.keys() | listed.keys())
            for mine, others, where in [(bases, listed, "the base"), (listed, bases, "docs/extending.md")]
            for member in sorted(mine.get(name, set()) - others.get(name, set()))]


def self_test():
    """The check sees a member that the page lacks, one that it alone has, and no private one."""
    header = ("struct without_options {\n  struct options {};\n};\n\nstruct a_base : detail::without_options {\n  /// f(x)\n"
              "  static bool f(int) { return g(); }\n  static constexpr bool c = true;\n\nprivate:\n  int g();\n};\n")
    page = "## What a policy may offer\n\n| base | member |\n|---|---|\n| `a_base` | `f`, `c` | x |\n| | `options` | y |\n\n## Next\n"
    assert bases_in([header]) == {"a_base": {"f", "c", "options"}}, bases_in([header])
    assert faults_of(bases_in([header]), table_in(page)) == []
    assert len(faults_of(bases_in([header]), table_in(page.replace("`f`, ", "")))) == 1
    assert len(faults_of(bases_in([header]), table_in(page.replace("`f`", "`f`, `h`")))) == 1
    assert len(faults_of(bases_in([header]), {})) == 3


def main():
    self_test()
    root = pathlib.Path(sys.argv[1])
    bases = bases_in(path.read_text(encoding="utf-8") for path in sorted((root / "include" / "oktopk").rglob("*.hpp")))
    faults = faults_of(bases, table_in((root / "docs" / "extending.md").read_text(encoding="utf-8")))
    print(f"{len(bases)} bases, {sum(map(len, bases.values()))} members")
    if faults or not bases:
        sys.exit("\n".join(faults) or "no base is found")


main()
