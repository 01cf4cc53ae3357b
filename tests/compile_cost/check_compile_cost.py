# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""check_compile_cost.py [--write] CLANG -std=c++20 -I... : the cost of compiling programs with oktopk, by what does not
depend on the machine: headers of the library that clang reads, and templates of the library that it instantiates.

Fails where a program needs 3 % more than baseline.json has, and names what grew. --write makes a new baseline."""
import collections
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BASELINE = HERE / "baseline.json"
ALLOWED = 1.03
DOORS = ("adam", "allreduce", "bucketed", "catalogue/catalogue", "error_feedback", "mpi", "sgd")


def programs():
    """Source of each program: the bare call, the program by text, and every front door."""
    yield "bare_call", (ROOT / "examples/bare_call.cpp").read_text(encoding="utf-8")
    yield "by_text", (HERE / "by_text.cpp").read_text(encoding="utf-8")
    for door in DOORS:
        yield door, f"#include <oktopk/{door}.hpp>\n"


def cost(compiler, source):
    """How often each header is read, and how many instances each template has."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "program.cpp"
        path.write_text(source, encoding="utf-8")
        subprocess.run([*compiler, "-O0", "-w", "-c", path, "-o", path.with_suffix(".o"), "-ftime-trace",
                        "-ftime-trace-granularity=0"], check=True)
        events = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))["traceEvents"]
    headers, templates = set(), collections.Counter()
    for event in events:
        what = event.get("args", {}).get("detail", "")
        if event["name"] == "Source" and "include/oktopk/" in what:
            headers.add(what.rpartition("include/")[2])
        elif event["name"] in ("InstantiateClass", "InstantiateFunction") and what.startswith("oktopk::"):
            templates[re.match(r"[\w:]*\w", what)[0]] += 1
    return {"headers": dict.fromkeys(sorted(headers), 1), "instances": dict(sorted(templates.items()))}


def growth(name, kind, before, now):
    """A sentence about what grew too much; none where nothing did."""
    if sum(now.values()) <= ALLOWED * sum(before.values()):
        return []
    more = sorted(((count - before.get(each, 0), each) for each, count in now.items()), reverse=True)
    return [f"{name}: {sum(now.values())} {kind} instead of {sum(before.values())}; more of "
            + ", ".join(f"{each} (+{count})" for count, each in more[:10] if count > 0)]


def main():
    arguments = sys.argv[1:]
    write = arguments[0] == "--write"
    compiler = arguments[1:] if write else arguments
    version = re.search(r"version (\d+)", subprocess.run([compiler[0], "--version"], check=True, text=True,
                                                         capture_output=True).stdout)[1]
    now = {name: cost(compiler, source) for name, source in programs()}
    if write:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(each)}" for name, each in now.items())
        BASELINE.write_text(f'{{"clang": "{version}",\n{lines}\n}}\n', encoding="utf-8")
        return
    before = json.loads(BASELINE.read_text(encoding="utf-8"))
    if before["clang"] != version:
        print(f"the baseline is of clang {before['clang']}")
        sys.exit(77)
    faults = []
    for name, each in now.items():
        for kind, counts in each.items():
            faults += growth(name, kind, before[name][kind], counts)
            print(f"{name}: {sum(counts.values())} {kind}, {sum(before[name][kind].values())} in the baseline")
    sys.exit("\n".join(faults) or 0)


main()
