# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs oktopk_advise as a user would and checks what it writes, from outside."""

import pytest
from conftest import VERSION, run, succeed

CLUSTER = ["--length", 1_000_000, "--ranks", 8]


def rows(text):
    """The schemes of a table with their predicted milliseconds, messages and bytes."""
    lines = text.splitlines()
    head = next(i for i, line in enumerate(lines) if line.split()[:2] == ["predicted", "ms"])
    table = []
    for line in lines[head + 1:]:
        predicted, measured, messages, sent, scheme = line.split(maxsplit=4)
        assert measured == "-"
        table.append((scheme, float(predicted), float(messages), float(sent)))
    return table


@pytest.fixture
def machine(tmp_path, program):
    """A file with the speed of this processor."""
    path = tmp_path / "machine"
    succeed(program.path, *CLUSTER, "--save-machine", path)
    return path


def test_table(program, machine):
    """A slow network gets few bytes, and the network that is asked for is the one that counts."""
    slow = rows(succeed(program.path, *CLUSTER, "--machine", machine, "--rate", 10))
    fast = rows(succeed(program.path, *CLUSTER, "--machine", machine, "--rate", 1e6))
    for table in (slow, fast):
        assert [row[1] for row in table] == sorted(row[1] for row in table)
        assert {"dense", "halving_doubling", "ok_topk", "ok_topk(format=packed)"} <= {row[0] for row in table}
        assert not any("sign" in row[0] or "bfloat16" in row[0] for row in table)
    assert "topk" in slow[0][0]
    dense = {row[0]: row for row in slow}["dense"]
    assert dense[3] == pytest.approx(2 * 4e6 * 7 / 8, rel=0.01)
    assert dense[1] == pytest.approx(dense[3] * 8 / 10e6 * 1e3, rel=0.1)


def test_sums(program, machine):
    given = [*CLUSTER, "--machine", machine, "--sums"]
    exact = {row[0] for row in rows(succeed(program.path, *given, "exact"))}
    unrounded = {row[0] for row in rows(succeed(program.path, *given, "unrounded"))}
    rounded = {row[0] for row in rows(succeed(program.path, *given, "rounded"))}
    assert exact < unrounded < rounded
    assert all(name.startswith("ok_topk") for name in exact)


def test_machine_is_kept(program, machine, tmp_path):
    again = tmp_path / "again"
    succeed(program.path, *CLUSTER, "--machine", machine, "--save-machine", again)
    assert again.read_text() == machine.read_text()


def test_plan(program, machine, tmp_path):
    """Buckets hold all tensors in their order, and each has a scheme."""
    tensors = tmp_path / "tensors"
    tensors.write_text("bias 100\nweight 4000000\n\nlast 3000000\n")
    text = succeed(program.path, "--ranks", 4, "--tensors", tensors, "--machine", machine,
                   "--bucket-mib", 16, "--rate", 100)
    lines = [line.split(maxsplit=4) for line in text.splitlines()[2:-1]]
    assert [(int(line[1]), int(line[2])) for line in lines] == [(2, 4000100), (1, 3000000)]
    assert lines[0][4].endswith("# bias to weight") and "topk" in lines[0][4]
    assert text.splitlines()[-1].startswith("2 buckets, ")


@pytest.mark.parametrize("arguments, sentence", [
    ([], "--ranks is required"),
    (["--ranks", 4], "--length or --tensors is required"),
    (["--ranks", 4, "--length", 10, "--density", 2], "2 is not a number over 0 and at most 1"),
    (["--ranks", 4, "--length", 10, "--rate", "nan"], "nan is not a finite number over 0"),
    (["--ranks", 0, "--length", 10], "--ranks"),
    (["--ranks", 4, "--length", 10, "--machine", "nowhere"], "nowhere cannot be read"),
    (["--ranks", 4, "--tensors", "nowhere"], "nowhere cannot be read"),
    (["--ranks", 4, "--length", 10, "--sums", "some"], "--sums"),
    (["--ranks", 4, "--length", 10, "--save-machine", "no/where"], "no/where cannot be written"),
])
def test_refuses(program, arguments, sentence, tmp_path):
    done = run(program.path, *arguments, cwd=tmp_path)
    assert done.returncode != 0
    assert sentence in done.stderr and done.stderr.startswith("oktopk_advise: ")


@pytest.mark.parametrize("line", ["weight", "weight many", "weight 0", "weight 3 4"])
def test_refuses_damaged_tensors(program, line, tmp_path):
    (tmp_path / "tensors").write_text(f"bias 100\n{line}\n")
    done = run(program.path, "--ranks", 4, "--tensors", tmp_path / "tensors")
    assert done.returncode != 0 and f'line 2: "{line}"' in done.stderr


def test_refuses_damaged_machine(program, tmp_path):
    (tmp_path / "machine").write_text("latency = fast\n")
    done = run(program.path, *CLUSTER, "--machine", tmp_path / "machine")
    assert done.returncode != 0 and 'the line "latency = fast"' in done.stderr


def test_help(program):
    assert "--tensors" in succeed(program.path, "--help")
    assert succeed(program.path, "--version").startswith(f"oktopk_advise {VERSION} (Kokkos ")
