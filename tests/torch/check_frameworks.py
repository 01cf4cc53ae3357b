# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains with oktopk_torch under the frameworks that people use around PyTorch, on several processes: the examples, and cases of each.

It needs torch 2.7 or newer and the packages of PyPI, in the Python of OKTOPK_TEST_TORCH or in this one; what is not there is skipped."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import typing

import pytest
from conftest import ROOT, SECONDS, run

HERE, EXAMPLES = pathlib.Path(__file__).parent, ROOT / "examples" / "torch"
PYTHON = os.environ.get("OKTOPK_TEST_TORCH", sys.executable)


class Framework(typing.NamedTuple):
    """A framework with its example, and the arguments for half of its steps, and for all; `forget(folder, program)` makes a
    program and a checkpoint that have no residuals."""
    package: str
    example: str
    half: list
    whole: list
    forget: typing.Optional[typing.Callable]

    @property
    def program(self):
        return EXAMPLES / self.example


def without(text):
    """Forgets by a program without this text."""
    def forget(folder, program):
        source = program.read_text("utf-8")
        assert text in source
        (folder.parent / program.name).write_text(source.replace(text, ""), "utf-8")
        for each in folder.glob("*/custom_checkpoint_0.pkl"):  # which Accelerate counts
            each.unlink()
        return folder.parent / program.name
    return forget


def without_callback(folder, program):
    """As a run without the callback leaves a checkpoint of Lightning."""
    succeed("-c", "import sys, torch\nfound = torch.load(sys.argv[1], weights_only=False)\nassert found.pop('callbacks')\n"
                  "torch.save(found, sys.argv[1])", folder / "last.ckpt")
    return program


def without_index(folder, program):
    for each in folder.glob("*/oktopk.json"):
        each.unlink()
    return program


FRAMEWORKS = {
    "lightning": Framework("lightning", "lightning_trainer.py", ["--epochs", 1], ["--epochs", 2], without_callback),
    "accelerate": Framework("accelerate", "accelerate_loop.py", ["--epochs", 1], ["--epochs", 2],
                            without("    accelerator.register_for_checkpointing(oktopk_torch.gathered(state))\n")),
    "transformers": Framework("transformers", "transformers_trainer.py", ["--steps", 50], ["--steps", 100], without_index),
    "torchrun": Framework("torch", "torchrun.py", ["--steps", 51], ["--steps", 101], without(', "sparse": oktopk_torch.gathered(state)')),
    "fsdp2": Framework("torch", "fsdp2.py", [51], [101], None),
}
KEPT = """
import sys, torch
sums = []
for count, kind in ((int(sys.argv[1]), "residuals"), (int(sys.argv[3]), "loaded")):
    found = [torch.load(f"{sys.argv[2 if kind == 'residuals' else 4]}.{rank}")[kind] for rank in range(count)]
    sums.append(sum(each[-1] if kind == "loaded" else each for each in found) / count)
assert sums[0].count_nonzero() > 0.5 * sums[0].numel() and torch.allclose(*sums, rtol=1e-5, atol=1e-7), sums
"""
THE_SAME = """
import sys, torch
for rank in range(int(sys.argv[1])):
    one, other = (torch.load(f"{each}.{rank}") for each in sys.argv[2:])
    assert one["steps"] > other["steps"] > 0 and not one["loaded"] and len(other["loaded"]) == 1, (one, other)
    for name in ("weights", "residuals"):
        assert one[name] is other[name] is None or torch.equal(one[name], other[name]), name
"""
WRITTEN = """
import pathlib, sys, torch
def read(folder):
    states = [torch.load(each)["state"] for each in sorted(pathlib.Path(folder).glob("oktopk.rank*.pt"))]
    return torch.load(f"{folder}/weights")[1], {name: data for each in states for name, (data,) in each.items()}
for one, other in zip(*map(read, sys.argv[1:])):
    assert list(one) == list(other) and all(torch.equal(one[name], other[name]) for name in one)
"""


@pytest.fixture(autouse=True)
def a_folder_of_its_own(monkeypatch, tmp_path):
    """For what frameworks write where they are started."""
    monkeypatch.chdir(tmp_path)


def succeed(*command, **options):
    done = run(PYTHON, *command, **options)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done


def need(package):
    found = run(PYTHON, "-c", "import torch; print(*torch.__version__.split('.')[:2])")
    if found.returncode or tuple(map(int, found.stdout.split())) < (2, 7):
        pytest.skip(f"{PYTHON} has no torch 2.7 or newer (OKTOPK_TEST_TORCH names a Python that has)")
    if run(PYTHON, "-c", f"import {package}").returncode:
        pytest.skip(f"{PYTHON} has no package {package}: python3 -m pip install {package}")


def start(ranks, *command, **options):
    """A program on so many ranks."""
    return succeed("-m", "torch.distributed.run", "--standalone", "--nproc_per_node", ranks, *command, **options)


def train(framework, out, folder, arguments, ranks=2, program=None):
    """Runs the example, and keeps in `out` what its ranks have; what it says."""
    given = ["--ranks", ranks] if framework.package == "lightning" else []
    return start(ranks, HERE / "framework_run.py", out, program or framework.program, folder, *arguments, *given)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_example_trains_and_goes_on(name, tmp_path):
    """From its middle with the bits of a run that was not interrupted; on three ranks with all that waited on two; and where what
    waited was forgotten, it says so."""
    framework = FRAMEWORKS[name]
    need(framework.package)
    assert len(framework.program.read_text("utf-8").splitlines()) <= 40
    said = train(framework, tmp_path / "straight", tmp_path / "whole", framework.whole)
    losses = [float(each) for each in re.findall(r"^step \d+: loss ([0-9.]+)$", said.stdout, re.M)]
    assert len(losses) >= 2 and losses[-1] < 0.6 * losses[0], said.stdout
    assert "oktopk_torch: " not in said.stderr
    folder = tmp_path / "part"
    train(framework, tmp_path / "half", folder, framework.half)
    copies = [shutil.copytree(folder, tmp_path / each / "part") for each in ("other", "forgotten")]
    assert "oktopk_torch: " not in train(framework, tmp_path / "resumed", folder, framework.whole).stderr
    succeed("-c", THE_SAME, 2, tmp_path / "straight", tmp_path / "resumed")
    assert "oktopk_torch: " not in train(framework, tmp_path / "on_three", copies[0], framework.whole, ranks=3).stderr
    succeed("-c", KEPT, 2, tmp_path / "half", 3, tmp_path / "on_three")
    if framework.forget:
        program = framework.forget(copies[1], framework.program)
        said = train(framework, tmp_path / "forgot", copies[1], framework.whole, program=program).stderr
        assert len(re.findall("UserWarning: oktopk_torch: .* the state begins with residuals of 0", said)) == 2, said


@pytest.mark.parametrize("name", ["lightning", "transformers", "accelerate"])
def test_cases(name, tmp_path):
    need(name)
    assert start(2, HERE / "framework_cases.py", name, tmp_path, timeout=3 * SECONDS).stdout.count("done") == 2


def test_lightning_starts_its_ranks(tmp_path):
    """Without torchrun."""
    need("lightning")
    succeed(FRAMEWORKS["lightning"].program, tmp_path, "--epochs", 1)
    assert (tmp_path / "last.ckpt").exists()


def test_compiled_example_trains(tmp_path):
    need("torch")
    found = [re.findall(r"loss ([0-9.]+)", start(2, EXAMPLES / "torchrun.py", tmp_path / str(len(how)), "--steps", 51, *how).stdout)
             for how in ([], ["--compile", "aot_eager"])]
    assert len(found[0]) == 2 and all(abs(float(one) - float(other)) < 0.01 for one, other in zip(*found)), found


@pytest.mark.parametrize("launcher", ["mpirun", "mpirun.mpich"])
def test_mpirun_example_trains(launcher, monkeypatch, tmp_path):
    """On the ranks of Open MPI and of MPICH, whose variables differ, with the losses of those that torchrun starts."""
    need("torch")
    if not shutil.which(launcher):
        pytest.skip(f"there is no {launcher} (Debian: openmpi-bin, mpich)")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setenv("MASTER_PORT", str(free.getsockname()[1]))
    for each in ("ALLOW_RUN_AS_ROOT", "ALLOW_RUN_AS_ROOT_CONFIRM", "MCA_rmaps_base_oversubscribe"):
        monkeypatch.setenv(f"OMPI_{each}", "1")
    monkeypatch.setenv("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe")  # of Open MPI 5
    monkeypatch.setenv("OMPI_MCA_plm", "isolated")
    said = [run(launcher, "-n", 2, PYTHON, EXAMPLES / "mpirun.py", 51),
            start(2, EXAMPLES / "torchrun.py", tmp_path / "saved", "--steps", 51)]
    losses = [re.findall(r"^step \d+: loss [0-9.]+$", each.stdout, re.M) for each in said]
    assert len(losses[0]) == 2 and losses[0] == losses[1], said


def test_ray_example_goes_on(tmp_path):
    """Ray starts the ranks, so what they have written is compared."""
    need("ray")
    said = [succeed(EXAMPLES / "ray_train.py", tmp_path / folder, steps, timeout=3 * SECONDS).stdout
            for folder, steps in (("straight", 101), ("part", 51), ("part", 101))]
    losses = [float(each) for each in re.findall(r"step \d+: loss ([0-9.]+)", said[0])]
    assert len(losses) == 3 and losses[-1] < 0.6 * losses[0], said[0]
    succeed("-c", WRITTEN, tmp_path / "straight", tmp_path / "part")


AS_TORCHRUN = """
import os, runpy, sys, torch
store = torch.distributed.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="localhost", MASTER_PORT=str(store.port))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""  # whose ranks outlive it where it is killed


@contextlib.contextmanager
def lighthouse():
    """Of torchft: the address."""
    program = ("from torchft.coordination import LighthouseServer\nserver = LighthouseServer(bind='[::]:0', min_replicas=2, "
               "join_timeout_ms=60000, quorum_tick_ms=20, heartbeat_timeout_ms=5000)\nprint(server.address(), flush=True)\ninput()")
    with subprocess.Popen([PYTHON, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as serves:
        try:
            yield serves.stdout.readline().strip()
        finally:
            serves.kill()


@contextlib.contextmanager
def replicas(commands, folder):
    """Programs, by their names, that are killed at the end; what they say is in files of the folder."""
    started = {}
    try:
        for name, command in commands.items():
            with (folder / f"{name}.out").open("w") as out, (folder / f"{name}.err").open("w") as err:
                started[name] = subprocess.Popen([PYTHON, *map(str, command)], stdout=out, stderr=err)
        yield started
    finally:
        for each in started.values():
            each.kill()
            each.wait()


def wait_until(holds, folder, seconds=4 * SECONDS):
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "".join(f"{each}:\n{each.read_text()[-3000:]}" for each in folder.glob("*.err"))
        time.sleep(0.05)


# Of torchft_replica.py: each replica with its options, how many die, and (members, participants) as the first one sees them.
QUORUMS = {
    "kills": (["first fault=150:nan novote=155+165 calls=40:c+90:d+170:e", "b calls=40:c die=80:before",
               "c called=1 novote=155 calls=90:d+170:e", "d called=1 die=120:behind", "e called=1 fault=180:error die=185:vote"], 3,
              [(2, 2), (3, 3), (2, 2), (3, 3), (2, 2), (3, 3), (2, 2)]),
    "heals": (["first quorum=async limit=10 fault=150:sparse calls=40:c+110:d+140:back",
               "b quorum=async limit=10 calls=40:c+110:d stop=130",
               "c quorum=async limit=10 called=1 die=100:behind", "d quorum=async limit=10 called=1 calls=140:back"], 1,
              [(2, 2), (3, 2), (3, 3), (2, 2), (3, 2), (3, 3), (2, 2), (3, 2), (3, 3)]),
    "spares": (["first spares=1 calls=40:c", "b spares=1 calls=40:c", "c spares=1 called=1"], 0, [(2, 2), (3, 2)]),
}


@pytest.mark.parametrize("case", QUORUMS)
def test_torchft_quorums(case, tmp_path, monkeypatch):
    """200 steps with replicas that come, die, stop, and bring what is no gradient. What a step applies is the same on all. What was
    applied, and the mean of what waits on those that are there, add up to what was brought to the steps that a replica has
    committed, but for what waited on those that died: each in its part of the mean of then."""
    need("torchft")
    monkeypatch.setenv("RUST_LOG", "error")
    options, deaths, quorums = QUORUMS[case]
    names = [each.split()[0] for each in options]
    with lighthouse() as address:
        commands = {name: [HERE / "torchft_replica.py", address, tmp_path, name, 200, f"of={'+'.join(names)}", *each.split()[1:]]
                    for name, each in zip(names, options)}
        with replicas(commands, tmp_path) as started:
            def have_ended():
                if (tmp_path / "back.called").exists():
                    started["b"].send_signal(signal.SIGCONT)
                return all(each.poll() is not None for each in started.values())
            wait_until(have_ended, tmp_path)
            codes = sorted(each.returncode for each in started.values())
    assert codes == [-signal.SIGKILL] * deaths + [0] * (len(names) - deaths), [each.read_text() for each in tmp_path.glob("*.err")]
    succeed(HERE / "torchft_replica.py", "check", tmp_path, 200, "+".join(names), repr(quorums))


def test_torchft_alone():
    need("torchft")
    succeed(HERE / "torchft_replica.py", "alone")


def test_torchft_example_trains(tmp_path, monkeypatch):
    """Three replicas, and the other two when one is killed."""
    need("torchft")
    example = EXAMPLES / "torchft_replicas.py"
    assert len(example.read_text("utf-8").splitlines()) <= 40
    monkeypatch.setenv("RUST_LOG", "error")
    with lighthouse() as address:
        monkeypatch.setenv("TORCHFT_LIGHTHOUSE", address)
        commands = {each: ["-c", AS_TORCHRUN, example, each, 10 ** 9] for each in "abc"}
        with replicas(commands, tmp_path) as started:
            def losses(name):
                return re.findall(r"^step (\d+): (\d) replicas, loss ([0-9.]+)$", (tmp_path / f"{name}.out").read_text(), re.M)
            wait_until(lambda: losses("a") and losses("a")[-1][1] == "3", tmp_path)
            started["b"].kill()
            wait_until(lambda: losses("a")[-1][1] == "2", tmp_path)
            assert float(losses("a")[-1][2]) < 0.2 * float(losses("a")[0][2]), losses("a")


@pytest.mark.parametrize("name", ["lightning", "transformers"])
def test_says_what_is_missing(name):
    program = f"import sys\nsys.modules['{name}'] = sys.modules['pytorch_{name}'] = None\nimport oktopk_torch.{name}"
    said = run(sys.executable, "-c", program).stderr
    assert said.splitlines()[-1].startswith(f"ImportError: oktopk_torch.{name} needs {name.capitalize()}: pip install {name}"), said
