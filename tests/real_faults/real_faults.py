#!/usr/bin/env python3
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Real faults of real ranks: processes of MPI, or over TCP, that are killed, stopped, slowed down, end early or have no memory.

Each run starts faulty_ranks under Open MPI or MPICH, or by start_ranks.py, with the option that lets the other ranks live on,
draws who misbehaves and when, and checks afterwards: every survivor has an error within 1.5 times the deadline, or all
is well where the fault is shorter than that; accumulators and states are as before the call that failed; the same sums
on all ranks in every call; a second call fails at once; no process is left. Prints a line for each run, and fails
where one is not as it should be. A number replays the draws of a run.

The deadline, and all other limits with it, grow with what else the machine has to do when a run starts. A run in which
an error came too late is void, and repeated, where the machine was busier at its end.
"""

import argparse
import dataclasses
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from slowness import slowness  # pylint: disable=wrong-import-position

KINDS = ("kill", "stop", "pause", "late", "slow", "exit", "memory")
ALGORITHMS = ("ok_topk", "ok_topk(format=packed)", "topk_a", "gtopk", "ring")
# By launcher: what lets the survivors live on, and what lets them share few cores.
LIVES_ON = {
    "openmpi": ["--enable-recovery", "--mca", "orte_abort_on_non_zero_status", "0", "--oversubscribe", "--mca",
                 "mpi_yield_when_idle", "1", "--mca", "plm", "isolated"],
    "openmpi from 5 on": ["--runtime-options", "recoverable,continuous,error-nonzero-status=0", "--oversubscribe", "--mca",
                          "mpi_yield_when_idle", "1"],
    "mpich": ["-disable-auto-cleanup"],
    "tcp": ["--recoverable"],
}
# MPICH's launcher kills all ranks where one ends by a signal, so that one is to end by a status.
RANK = {"openmpi": [], "mpich": ["sh", "-c", 'trap "" USR1; "$0" "$@" || exit 9'],
        "tcp": []}
# Memory that UCX shares with a rank that is gone ends the others; with MPICH 5 it is TCP that can end a survivor.
ENVIRONMENT = {"mpich": {"UCX_TLS": "tcp,self"}}
MARK = "OKTOPK_REAL_FAULT"  # in the environment of every process of a run


@dataclasses.dataclass
class Draw:
    """What one run does; everything follows from its number."""
    number: int
    kind: str
    ranks: int
    algorithm: str
    culprit: int
    call: int
    checked: bool
    length: int

    @staticmethod
    def of(number, kinds):
        """The draws of a number."""
        source = random.Random(number)
        ranks = source.randint(2, 5)
        kind = source.choice(kinds)
        call = source.choice((0, 0, source.randint(1, 30))) if kind == "memory" else source.randint(0, 30)
        return Draw(number, kind, ranks, source.choice(ALGORITHMS), source.randrange(ranks),
                    call, source.random() < 0.3, source.choice((1000, 100000, 1000000)))

    def __str__(self):
        return (f"{self.number}: {self.kind} rank {self.culprit} of {self.ranks} at call {self.call}, "
                f"{self.algorithm}{' checked' if self.checked else ''}, n = {self.length}")


def read_diary(path):
    """The lines that a rank has written so far: time and words."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]  # whole ones
    # A library without memory may write into any file.
    lines = [line for line in lines if re.match(r"\d{16} ", line)]
    return [(int(line.split(" ", 1)[0]) / 1e6, line.split(" ", 1)[1]) for line in lines]


def different_sums(diaries):
    """A sentence for each call that gave other sums on another rank."""
    sums = {}
    for lines in diaries:
        for _, text in lines:
            if text.startswith("call "):
                _, call, digest = text.split()
                sums.setdefault(call, set()).add(digest)
    return [f"the ranks have different sums in call {call}" for call, digests in sums.items() if len(digests) > 1]


class Run:
    """One start of the ranks, and what their diaries say."""

    def __init__(self, given, draw, folder, deadline):
        self.given, self.draw, self.folder, self.deadline = given, draw, pathlib.Path(folder), deadline
        self.mark = f"{os.getpid()}.{draw.number}.{time.time_ns()}"
        command = [*given.launcher, *given.lives_on, "-n", str(draw.ranks), *RANK[given.mpi], given.program,
                   "--log", folder,
                   "--algorithm", draw.algorithm, "--deadline", str(deadline), "--length", str(draw.length),
                   "--calls", "400" if draw.kind in ("kill", "stop", "late") else "60"]
        command += ["--checked"] if draw.checked else []
        if draw.kind in ("exit", "memory", "slow"):
            command += ["--fault", draw.kind, "--culprit", str(draw.culprit), "--at-call", str(draw.call)]
        self.output = open(self.folder / "output", "w", encoding="utf-8")
        self.launched = subprocess.Popen(command, stdout=self.output, stderr=subprocess.STDOUT, start_new_session=True,
                                         env={**os.environ, **given.environment, MARK: self.mark})

    def diary(self, rank):
        """The lines of a rank so far: time and words."""
        return read_diary(self.folder / f"rank.{rank}")

    def last(self, rank, word):
        """The last line of a rank that begins with a word, or None."""
        found = [(when, text) for when, text in self.diary(rank) if text.split(" ", 1)[0] == word]
        return found[-1] if found else None

    def wait_for(self, condition, seconds):
        """Whether it holds in time."""
        end = time.time() + seconds
        while time.time() < end:
            if condition():
                return True
            time.sleep(0.01)
        return condition()

    def pid(self, rank):
        """The process of a rank."""
        return int(self.last(rank, "pid")[1].split()[1])

    def has_called(self, rank, call):
        """Whether a rank is through with a call."""
        done = self.last(rank, "call")
        return done is not None and int(done[1].split()[1]) >= call

    def is_over(self, rank):
        """Whether a rank has written its last line."""
        return self.last(rank, "end") is not None or self.last(rank, "done") is not None

    def left(self):
        """Processes of this run that still live."""
        found = []
        for path in pathlib.Path("/proc").iterdir():
            if path.name.isdigit():
                try:
                    if f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes():
                        found.append(int(path.name))
                except OSError:
                    pass  # it has ended meanwhile, or is none of ours
        return found

    def end(self):
        """Ends whatever is left."""
        for pid in self.left():
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.launched.wait()
        self.output.close()


def strike(run):
    """Does to the culprit what the draw says. Gives the time of the fault, or None where the ranks never got there."""
    draw = run.draw
    start = 20 * run.deadline
    if draw.kind in ("exit", "memory"):
        def has_struck():
            lines = run.diary(draw.culprit)
            return run.has_called(draw.culprit, draw.call - 1) if draw.call else any(t == "ready" for _, t in lines)
        return time.time() if run.wait_for(has_struck, start) else None
    if not run.wait_for(lambda: run.has_called(draw.culprit, draw.call), start):
        return None
    if draw.kind == "slow":
        return time.time()
    pid = run.pid(draw.culprit)
    os.kill(pid, signal.SIGKILL if draw.kind == "kill" else signal.SIGSTOP)
    struck = time.time()
    if draw.kind == "pause":
        time.sleep(run.deadline / 2)
        os.kill(pid, signal.SIGCONT)
    return struck


def faults_of(run, struck):
    """What is not as it should be after a run, and whether an error came too late."""
    draw, deadline = run.draw, run.deadline
    everyone = range(draw.ranks)
    goes_well = draw.kind in ("pause", "slow")
    gone = () if goes_well or draw.kind in ("late", "memory") else (draw.culprit,)
    if draw.kind == "late":
        others = [rank for rank in everyone if rank != draw.culprit]
        run.wait_for(lambda: all(run.is_over(rank) for rank in others), 6 * deadline)
        os.kill(run.pid(draw.culprit), signal.SIGCONT)
    if draw.kind == "memory" and not run.wait_for(lambda: run.is_over(draw.culprit), 2 * deadline):
        gone = (draw.culprit,)  # libraries below may end a process that has no memory
    survivors = [rank for rank in everyone if rank not in gone]
    patience = 40 * deadline if goes_well else 6 * deadline
    found, late = [], False
    if not run.wait_for(lambda: all(run.is_over(rank) for rank in survivors), patience):
        hung = [rank for rank in survivors if not run.is_over(rank)]
        return [f"rank {rank} hangs after: {run.diary(rank)[-1:]}" for rank in hung], False
    if draw.kind == "stop":
        os.kill(run.pid(draw.culprit), signal.SIGKILL)
    for rank in survivors:
        heard = run.last(rank, "error")
        if goes_well:
            found += [f"rank {rank} has {heard[1]}"] if heard else []
            continue
        if not heard:
            # A steady call allocates nothing, so that a rank may need no memory to the end.
            found += [] if draw.kind == "memory" and run.last(rank, "done") else [f"rank {rank} has no error"]
            continue
        took = heard[0] - struck
        if took > 1.5 * deadline and not (draw.kind == "late" and rank == draw.culprit):
            late = True
            found.append(f"rank {rank} has its error {took:.2f} s after the fault: {heard[1]}")
        if run.last(rank, "changed"):
            found.append(f"rank {rank} is not as before the call")
        if draw.kind == "memory" and rank == draw.culprit:
            continue  # where it had none before its first message, the communicator is whole, and the next call goes on
        again = run.last(rank, "again")
        if not again or again[1].split(" ", 2)[2] == "nothing" or float(again[1].split()[1]) > deadline / 6:
            found.append(f"rank {rank} called again: {again}")
    found += different_sums(run.diary(rank) for rank in everyone)
    try:
        run.launched.wait(5 * deadline)
    except subprocess.TimeoutExpired:
        found.append("the launcher does not end")
    if not run.wait_for(lambda: not run.left(), 2 * deadline):
        found.append(f"processes are left: {run.left()}")
    return found, late


def sentence_of(run):
    """What a survivor said, for people."""
    for rank in range(run.draw.ranks):
        heard = run.last(rank, "error")
        if heard and rank != run.draw.culprit:
            return f"rank {rank}: {heard[1]}"
    return "all is well"


def what_happens(given, draw, busy):
    """What is not as it should be in a run on a machine so `busy`, and what was said: by a survivor, and by all."""
    with tempfile.TemporaryDirectory(prefix="oktopk.") as folder:
        run = Run(given, draw, folder, busy * given.deadline)
        try:
            struck = strike(run)
            found, late = (["the ranks did not come so far"], False) if struck is None else faults_of(run, struck)
            said = sentence_of(run)
        finally:
            run.end()
        output = (pathlib.Path(folder) / "output").read_text(encoding="utf-8", errors="replace")
    busier = slowness() if late else busy
    if busier > 1.25 * busy:
        print(f"{draw}: void, the machine is {busier:.1f} times slower than at rest, and was {busy:.1f}", flush=True)
        return what_happens(given, draw, busier)
    return found, said, output


def main():
    """Runs them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="faulty_ranks")
    parser.add_argument("--launcher", type=str.split, required=True, help="as in 'mpirun.openmpi'")
    parser.add_argument("--mpi", choices=RANK, required=True)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--first", type=int, default=1, help="number of the first run")
    parser.add_argument("--deadline", type=float, default=3.0, metavar="SECONDS", help="on a machine at rest")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=list(KINDS))
    given = parser.parse_args()
    version = subprocess.run([*given.launcher, "--version"], capture_output=True, text=True, check=False).stdout
    is_earlier = re.search(r"(\((Open MPI|OpenRTE)\)|^ +Version:) +[1-4]\.", version, re.MULTILINE)
    name = given.mpi if is_earlier else f"{given.mpi} from 5 on"
    given.lives_on = LIVES_ON.get(name, LIVES_ON[given.mpi])
    given.environment = ENVIRONMENT.get(name, {})
    wrong = 0
    for number in range(given.first, given.first + given.runs):
        draw = Draw.of(number, given.kinds)
        if given.runs == len(given.kinds):  # each of them once
            draw.kind = given.kinds[number - given.first]
        begun = time.time()
        found, said, output = what_happens(given, draw, slowness())
        print(f"{draw}: {'; '.join(found) if found else 'as it should be'} ({time.time() - begun:.1f} s)", flush=True)
        if found:
            print(f"    {said}")
            lines = re.sub(r"\n{2,}", "\n", output).splitlines()
            print("\n".join("    | " + line for line in lines[:12] + lines[12:][-8:]))
            wrong += 1
    print(f"{given.runs} runs with faults under {given.mpi}, {wrong} not as they should be")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
