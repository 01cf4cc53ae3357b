# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks the tables that run.py makes of rows that are kept."""

import subprocess
import sys

from conftest import ROOT, succeed

ROWS = ROOT / "benchmarks" / "torch" / "results" / "vgg16_1gbit.csv"


def shown(file):
    """What run.py says of a file."""
    return succeed(sys.executable, ROOT / "benchmarks" / "run.py", "show", file)


def test_training_says_when_the_accuracy_of_dense_is_reached():
    second = shown(ROWS).partition("Until 79.9 % are right:")[2]
    lines = [[cell.strip() for cell in line.split("|")] for line in second.splitlines()]
    cells = {line[1]: line[2:6] for line in lines if len(line) > 6}
    assert cells["topk_dsa"] == ["130", "8.11", "4.6", "1.48"]
    assert cells["dense"] == ["286", "37.49", "1.0", "3.28"]


def test_training_without_dense_has_nothing_to_reach(tmp_path):
    lines = ROWS.read_text(encoding="ascii").splitlines(keepends=True)
    without = tmp_path / "without_dense.csv"
    without.write_text("".join(line for line in lines if not line.startswith("dense,")), encoding="ascii")
    assert "are right:" not in shown(without)


def test_a_scheme_that_never_reaches_it_has_no_time(tmp_path):
    lines = ROWS.read_text(encoding="ascii").splitlines(keepends=True)
    short = tmp_path / "short.csv"
    kept = [line for line in lines if not line.startswith("gtopk,") or line.split(",")[6] in ("26", "52")]
    short.write_text("".join(kept), encoding="ascii")
    line = next(line for line in shown(short).partition("are right:")[2].splitlines() if line.startswith("| gtopk"))
    assert [cell.strip() for cell in line.split("|")[2:6]] == ["-", "-", "-", "-"]


def test_what_is_no_file_of_results_is_refused(tmp_path):
    lines = ROWS.read_text(encoding="ascii").splitlines(keepends=True)
    for name, content, expected in (("binary", b"\xff\xfe\x00", "no file of results"),
                                    ("cut", ("".join(lines[:5]) + lines[5][:9]).encode(), "as long as")):
        (tmp_path / name).write_bytes(content)
        done = subprocess.run([sys.executable, ROOT / "benchmarks" / "run.py", "show", tmp_path / name],
                              capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert expected in done.stderr and "Traceback" not in done.stderr
