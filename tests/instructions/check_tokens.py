# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

"""The headers have the same tokens whatever instructions the compiler may use: with other ones, translation units that
are compiled with different flags and linked together would define the same functions differently, and one of them would
run where the processor lacks its instructions. Arguments: the compiler, its flags, and the front doors to look at."""

import difflib
import re
import subprocess
import sys

VARIANTS = [[], ["-mavx2"], ["-mavx2", "-mfma"], ["-mavx512f"], ["-march=x86-64-v4"], ["-march=native"]]


def own_lines(text):
    """The lines of a preprocessed text that come from the library."""
    lines, own = [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            own = "include/oktopk/" in marker.group(1)
        elif own and line.strip():
            lines.append(line.strip())
    return lines


def preprocessed(command, headers, flags):
    text = "".join(f"#include <oktopk/{header}>\n" for header in headers)
    done = subprocess.run([*command, *flags, "-E", "-x", "c++", "-"], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return own_lines(done.stdout)


def main():
    headers = [argument for argument in sys.argv[1:] if argument.endswith(".hpp")]
    command = [argument for argument in sys.argv[1:] if not argument.endswith(".hpp")]
    plain = preprocessed(command, headers, [])
    if not any("magnitude_masks" in line for line in plain):
        sys.exit("these headers do not include the masks, or are not seen as the library's")
    faults = []
    for flags in VARIANTS[1:]:
        differences = [line for line in difflib.unified_diff(plain, preprocessed(command, headers, flags), n=0, lineterm="")
                       if not line.startswith(("---", "+++", "@@"))]
        print(f"{' '.join(flags)}: {len(differences)} of {len(plain)} lines differ")
        faults += differences
    if faults:
        sys.exit("\n".join(faults[:20]))


main()
