# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the site of the reference and checks it. Arguments: its folder, and the command that makes it.

The command must succeed, every link between pages must lead to a page and an anchor that exist, every class must be one
of the library, and what programs use must stand in the group for users.
"""

import html
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse

FOR_USERS = ("ok_topk", "save", "load", "for_other_ranks", "make_allreduce", "error_feedback", "sgd", "adam",
             "bucketed", "density_schedule", "mpi_communicator", "error", "version")


def faults_of(site):
    """A sentence for each fault."""
    texts = {page.name: page.read_text(encoding="utf-8") for page in site.glob("*.html")}
    anchors = {name: set(re.findall(r'(?:id|name)="([^"]+)"', text)) for name, text in texts.items()}
    for name, text in sorted(texts.items()):
        for link in sorted(set(re.findall(r'href="([^"]+)"', text))):
            if re.match(r"[a-z]+:", link):
                continue
            file, _, anchor = html.unescape(link).partition("#")
            file = urllib.parse.unquote(file) or name
            if re.match(r"(functions|globals).*#index_", f"{file}#{anchor}"):
                anchor = ""  # a letter of Doxygen's own list of members, of which 1.17 names some that it lacks
            if not (site / file).exists() or (anchor and file in anchors and anchor not in anchors[file]):
                yield f"{name} has a link that leads nowhere: {link}"
        if re.match(r"(class|struct)(?!oktopk_1_1|es\.html)", name):
            yield f"{name} is about a class that is no part of the library"
    group = texts.get("group__for__users.html", "")
    for name in FOR_USERS:
        if not re.search(rf">oktopk::{name}(<|&lt;| )", group):
            yield f"the group for users has no oktopk::{name}"


def main():
    site = pathlib.Path(sys.argv[1])
    if site.is_dir() and any(site.iterdir()) and not (site / "doxygen.css").exists():
        sys.exit(f"{site} holds something else than a site, and is not replaced")
    shutil.rmtree(site, ignore_errors=True)  # pages of an earlier run
    subprocess.run(sys.argv[2:], check=True)
    faults = list(faults_of(site))
    sys.exit("\n".join(faults) if faults else 0)


main()
