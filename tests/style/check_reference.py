# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""docs/reference.md lists what the headers declare in namespace oktopk, and nothing else: everything else is in a namespace
below it. Arguments: the project's root; --write makes the tables anew, with the first sentence of each doc comment."""

import pathlib
import re
import sys

SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', re.DOTALL | re.MULTILINE)
KINDS = ["class", "function", "concept", "enumeration"]


def head_of(declaration):
    """A declaration up to its body, on one line, without what stands in angle brackets and parentheses."""
    text = re.sub(r"\s+", " ", declaration).strip().replace("->", "~")
    head, depth = "", 0
    for letter in text:
        if letter in "(<":
            head += letter if letter == "(" and depth == 0 else ""
            depth += 1
        elif letter in ")>":
            depth -= 1
        elif depth == 0 and letter in "{=;":
            return re.sub(r"\s+", " ", head).strip() + letter
        elif depth == 0:
            head += letter
    return re.sub(r"\s+", " ", head).strip()


def kind_and_name(declaration):
    """The kind and the name of a declaration without comments; None where it is of no kind that the page lists."""
    text = re.sub(r"^(template ?)+", "", head_of(declaration))
    text = re.sub(r"^requires ?\S+( (&&|\|\|) \S+)* ", "", text)
    for pattern, kind in ((r"(?:class|struct) (?:\[\[.*?\]\] )?(\w+)", "class"), (r"concept (\w+)", "concept"), (r"enum class (\w+)", "enumeration")):
        if found := re.match(pattern, text):
            return (kind, found.group(1)) if text[-1] != ";" else None  # else it is defined elsewhere
    found = re.match(r"(?!using |friend |static_assert|extern |requires )[^(]* [&*]?(\w+) ?\(", text)
    return ("function", found.group(1)) if found and "~" not in text else None  # a deduction guide


def declared_in(header):
    """(kind, name, first sentence of its comment) of everything that a header declares in namespace oktopk itself."""
    text = header.read_text(encoding="utf-8")
    code = SKIPPED.sub(lambda found: re.sub(r"[^\n]", " ", found.group(0)), text)
    names, start, stack = [], 0, []
    for i, letter in enumerate(code):
        if letter == "(":
            stack.append("(")
        elif letter == ")":
            stack.pop()
        elif letter == "{":
            opened = re.search(r"namespace ([\w:]*) *$", code[start:i])
            stack.append(opened.group(1) if opened else None)
            if opened:
                start = i + 1
        elif letter == "}":
            closed = stack.pop()
            if closed is not None:
                start = i + 1
                continue
        in_oktopk = stack == ["oktopk"]
        ends = letter == ";" or (letter == "}" and not re.match(r"\s*[;&|]|\s*requires", code[i + 1:]))
        if in_oktopk and ends and code[start:i].strip():
            if found := kind_and_name(code[start:i + 1]):
                comment = re.findall(r"^/// ?(.*)$", text[start:i], re.MULTILINE)
                words = " ".join(comment[:comment.index("")] if "" in comment else comment)
                names.append((*found, re.split(r"(?<=[.:;])\s", words)[0].rstrip(":;")))
            start = i + 1
    return names


def main():
    root = pathlib.Path(sys.argv[1])
    library = root / "include" / "oktopk"
    found = {}
    for header in sorted(library.rglob("*.hpp")):
        for kind, name, sentence in declared_in(header):
            entry = found.setdefault((kind, name), [header.relative_to(library).as_posix(), sentence])
            entry[1] = entry[1] or sentence
    page = root / "docs" / "reference.md"
    text = page.read_text(encoding="utf-8")
    head = text[:text.index("## ")]
    made = head
    for kind in KINDS:
        rows = sorted((name, *found[kind, name]) for of, name in found if of == kind)
        title = {"class": "Classes", "enumeration": "Enumerations"}.get(kind, kind.capitalize() + "s")
        made += f"## {title}\n\n| name | header | |\n|---|---|---|\n"
        made += "".join(f"| `{name}` | [{header}](../include/oktopk/{header}) | {sentence} |\n" for name, header, sentence in rows)
        made += "\n"
    made = made.rstrip() + "\n"
    if "--write" in sys.argv:
        page.write_text(made, encoding="utf-8")
    elif made != text:
        ours, theirs = (set(re.findall(r"^\| `(\w+)`", each, re.MULTILINE)) for each in (text, made))
        sys.exit(f"docs/reference.md is not what the headers say; missing there: {sorted(theirs - ours)}, no longer in the headers: "
                 f"{sorted(ours - theirs)}. Make it anew: python3 tests/style/check_reference.py . --write")
    print(f"{len(found)} names in namespace oktopk")


main()
