# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table "which torch" of docs/torch.md: one wheel of oktopk_torch, tried with each Python, whatever torch it has.

    python3 tests/torch/which_torch.py dist/oktopk_torch-*.whl /usr/bin/python3 ~/torch-2.15/bin/python3"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
CHECKS = {name: ["-m", "pytest", "-c", HERE.parent / "pytest.ini", HERE / f"check_{name}.py"]
          for name in ("package", "ddp_hook", "devices")}
CHECKS["habits"] = [HERE.parent / "habits" / "torch_habits.py"]
SAYS = """
import platform, torch, oktopk_torch
print(f"| {torch.__version__.partition('+')[0]} | {platform.python_version()} |", *platform.libc_ver(), end=" |")
"""


def row(python, package):
    """Of a Python: torch, Python, the C library, and what passed; and whether something has failed."""
    given = {**os.environ, "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1",
             "OKTOPK_TEST_TORCH": python}

    def ran(*arguments):
        return subprocess.run([python, *arguments], env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
    found = ran("-c", SAYS)
    if found.returncode:
        return f"| {python}: {found.stdout.splitlines()[-1]} |", True
    cells, failed = [], False
    for name, arguments in CHECKS.items():
        ended = ran(*arguments)
        counts = re.findall(r"\d+ (?:passed|failed|skipped|error)", ended.stdout.splitlines()[-1] if ended.stdout else "")
        cells.append(f"{', '.join(counts) or 'passed'}" if ended.returncode == 0 else f"**failed** {', '.join(counts)}")
        if ended.returncode:
            failed = True
            print(f"{python}, {name}:\n{ended.stdout}", file=sys.stderr)
    return f"{found.stdout} {' | '.join(cells)} |", failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=zipfile.ZipFile)
    parser.add_argument("python", nargs="+", help="with torch and pytest")
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        given.wheel.extractall(folder)
        print(f"| torch | Python | C library | {' | '.join(CHECKS)} |\n|{'---|' * (3 + len(CHECKS))}", flush=True)
        for python in given.python:
            text, has_failed = row(python, folder)
            print(text, flush=True)
            failed |= has_failed
    return failed


if __name__ == "__main__":
    sys.exit(main())
