# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torchft_replica.py LIGHTHOUSE FOLDER NAME STEPS [OPTION=VALUE...]: a replica of check_frameworks.py. It averages random gradients
under torchft, and writes to FOLDER/NAME of each call what it has brought, the averages, whether the step was committed, and what waits.

of=NAME+...    begins when all of these programs are ready
called=1       begins when it is called
calls=N:NAME+  before step N calls another replica, and goes on when that one is about to join
limit=N        seconds
die=N:WHERE    SIGKILL in step N: before the averages, behind them (before the end of the step), or behind the vote
stop=N         SIGSTOP before the averages of step N
quorum=async   the quorum is found while the gradients are computed, so a replica that heals does not participate
fault=N:WHAT   in step N its gradient is not finite (nan), or a sparse tensor (sparse); or it reports an error (error)
novote=N+      does not vote on step N
spares=1       torchft's FIXED_WITH_SPARES

torchft_replica.py check FOLDER STEPS NAME+... QUORUMS: compares what they have written.
torchft_replica.py alone: what needs no other replica."""

import copy
import datetime
import os
import pathlib
import pickle
import signal
import sys
import time
import zlib

import torch
import torch.distributed as dist
from ddp_cases import carried
from ddp_cases import refused as refuses
from oktopk_torch import Error, torchft
from torch import nn
from torchft import DistributedDataParallel, Manager, ProcessGroupGloo
from torchft.manager import WorldSizeMode
from torchft.process_group import ProcessGroupDummy



def records(path):
    """What a replica has written, up to its death."""
    found = []
    if not path.exists():
        return found
    with path.open("rb") as file:
        while True:
            try:
                found.append(pickle.load(file))
            except EOFError:
                return found
            except pickle.UnpicklingError:  # it has died while it wrote
                return found


def wait_for(*files):
    while not all(each.exists() for each in files):
        time.sleep(0.01)


def residuals_of(average):
    saved = average.state_dict()
    return torch.cat(list(carried({**saved, "state": {"": (saved["state"],)}}, torch.float64)[0].values()))


def at(option):
    step, _, what = option.partition(":")
    return int(step or -1), what


def main(lighthouse, folder, name, steps, *options):
    folder, steps, given = pathlib.Path(folder), int(steps), dict(each.split("=") for each in options)
    (folder / f"{name}.ready").touch()
    wait_for(*(folder / f"{each}.ready" for each in given["of"].split("+")))  # Python needs longer to begin than 200 steps
    wait_for(folder / f"{name}.called") if "called" in given else None
    comes = [at(each) for each in given["calls"].split("+")] if "calls" in given else []
    limit = datetime.timedelta(seconds=int(given.get("limit", 20)))
    dies, where = at(given.get("die", ""))
    faulty, fault = at(given.get("fault", ""))
    stops, without_vote = int(given.get("stop", -1)), [int(each) for each in given.get("novote", "-1").split("+")]
    torch.manual_seed(3)
    model = nn.Sequential(nn.Linear(6, 40), nn.Linear(40, 1)).double()
    optimizer = torch.optim.SGD(model.parameters(), 0.125)
    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)

    def load(saved):
        model.load_state_dict(saved)
    manager = Manager(
        pg=ProcessGroupGloo(timeout=limit), load_state_dict=load, state_dict=lambda: copy.deepcopy(model.state_dict()),
        min_replica_size=2, rank=0, world_size=1, store_addr="localhost", store_port=store.port, lighthouse_addr=lighthouse,
        replica_id=name, timeout=limit, quorum_timeout=6 * limit, connect_timeout=limit, init_sync=False,
        use_async_quorum=given.get("quorum") == "async",
        world_size_mode=WorldSizeMode.FIXED_WITH_SPARES if "spares" in given else WorldSizeMode.DYNAMIC)
    average = torchft.average_gradients(manager, model, "ok_topk(density=0.05)")

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    attempt = 0
    with (folder / name).open("ab") as file:
        while manager.current_step() < steps:
            attempt += 1
            for step, other in comes:
                if manager.current_step() == step:
                    (folder / f"{other}.called").touch()
                    wait_for(folder / f"{other}.comes")
            (folder / f"{name}.comes").touch()
            manager.start_quorum()
            generator = torch.Generator().manual_seed(zlib.crc32(f"{name} {attempt}".encode()))
            for each in model.parameters():
                each.grad = torch.randn(each.shape, generator=generator, dtype=torch.float64)
            manager.wait_quorum()
            step, ranks, is_part = manager.current_step(), manager.num_participants(), manager.is_participating()
            gradient = torch.cat([each.grad.flatten() for each in model.parameters()])
            if step == dies and where == "before":
                die()
            if step == dies and where == "behind":
                torchft._Sums._end_step = die
            if step == stops and not (folder / f"{name}.stops").exists():
                (folder / f"{name}.stops").touch()
                os.kill(os.getpid(), signal.SIGSTOP)
                (folder / "back.comes").touch()
            told = ""
            if step == faulty and fault == "nan":
                model[0].bias.grad[3] = float("nan")
            elif step == faulty and fault == "sparse":
                model[0].weight.grad = model[0].weight.grad.to_sparse()
            elif step == faulty:
                manager.report_error(RuntimeError("this batch is bad"))
            began = time.time()
            try:
                average()
            except Error as error:
                told = str(error)
            seconds = time.time() - began
            if step == faulty:
                faulty = -1
            if step in without_vote:
                without_vote.remove(step)
                committed = False
            else:
                committed = manager.should_commit()
            averages = torch.cat([each.grad.to_dense().flatten() for each in model.parameters()])
            if committed:
                optimizer.step()
            pickle.dump({"step": step, "quorum": manager._quorum_id, "committed": committed, "ranks": ranks,
                         "members": average._sums.ranks(),
                         "gradient": gradient if is_part else 0 * gradient, "told": told, "seconds": seconds, "averages": averages,
                         "residuals": residuals_of(average),
                         "weights": torch.cat([each.detach().flatten() for each in model.parameters()]),
                         "error": str(getattr(manager.errored(), "original_exception", ""))}, file)
            file.flush()
            if step == dies and where == "vote":
                die()
    manager.shutdown(wait=False)
    os._exit(0)


def check(folder, steps, names, quorums):
    """Of what the replicas have written: see test_torchft_quorums."""
    every = {name: records(pathlib.Path(folder) / name) for name in names.split("+")}
    calls = [{(each["step"], each["quorum"]): each for each in found} for found in every.values()]  # the last one of each quorum
    brought = applied = 0
    for step in range(int(steps)):
        last = {name: each for name, found in every.items() for each in found if each["step"] == step and each["committed"]}
        one = next(iter(last.values()))
        for each in last.values():
            assert each["quorum"] == one["quorum"], (step, last)
            assert torch.equal(each["averages"], one["averages"]) and torch.equal(each["weights"], one["weights"]), (step, last)
        applied += one["averages"]
        brought += sum(each[step, one["quorum"]]["gradient"] for each in calls if (step, one["quorum"]) in each) / one["ranks"]
    gone = [[each for each in found if each["committed"]][-1] for name, found in every.items() if name not in last]
    waits = sum(each["residuals"] / each["members"] for each in [*last.values(), *gone])
    assert waits.norm() > 0.1 * brought.norm()
    assert torch.allclose(applied + waits, brought, rtol=0, atol=1e-11), (applied + waits - brought).abs().max()
    seen = [(each["members"], each["ranks"]) for each in every["first"]]
    seen = [each for each, before in zip(seen, [None, *seen]) if each != before]
    assert seen == eval(quorums), seen
    waited = max(each["seconds"] for found in every.values() for each in found)
    assert waited < 15, waited  # the limit is 20 s, and 10 s where one stops


def alone():
    """What is saved goes on, and without a step that was not committed; and what is refused."""
    class Stands:  # for a Manager with this replica alone
        def __init__(self):
            self._pg, self._quorum_id, self._timeout, self.step = ProcessGroupDummy(0, 1), 1, datetime.timedelta(seconds=9), 0
            self.wait_quorum = self.errored = lambda: None
            self.current_step, self.num_participants, self.is_participating = lambda: self.step, lambda: 1, lambda: True
            self.report_error = refused.append
    refused, scheme = [], "topk_a(density=0.1)"
    model, manager = nn.Linear(30, 1, bias=False).double(), Stands()
    average = torchft.average_gradients(manager, model, scheme)

    def step(by, value):
        model.weight.grad = None if value is None else torch.full_like(model.weight, value) * torch.arange(1, 31)
        by()
        return model.weight.grad.count_nonzero()
    assert step(average, 1.0) == 3 and residuals_of(average).count_nonzero() == 0  # nobody has voted
    manager.step = 1
    kept = average.state_dict()
    assert residuals_of(average).tolist() == [*range(1, 28), 0, 0, 0]
    assert step(average, 1.0) == 3
    assert residuals_of(average).tolist() == [*range(1, 28), 0, 0, 0]
    assert step(average, None) == 3 and model.weight.grad[0, 24:].tolist() == [25, 26, 27, 0, 0, 0]  # the step before has no trace
    saved = pathlib.Path("saved")
    torch.save(kept, saved)
    other = torchft.average_gradients(Stands(), model, scheme)
    other.load_state_dict(torch.load(saved))
    assert step(other, None) == 3 and model.weight.grad[0, 24:].tolist() == [25, 26, 27, 0, 0, 0] and not refused
    assert other.last_step()["ranks"] == 1 and other.residual_norm() > 0 and "topk_a" in other.report()
    refuses("before the first step", other.load_state_dict, kept)
    third = torchft.average_gradients(Stands(), model, scheme)
    refuses("is none of average_gradients: KeyError('state')", third.load_state_dict, {})
    refuses("", third.load_state_dict, {**kept, "state": kept["state"][:-1]})
    refuses("takes a torchft.Manager, and int has no current_step, wait_quorum, _pg", torchft.average_gradients, 1, model)
    refuses("there is no algorithm", torchft.average_gradients, Stands(), model, "topk_z")
    refuses("has no parameters", torchft.average_gradients, Stands(), nn.ReLU())
    refuses("torchft's DistributedDataParallel has averaged", torchft.average_gradients, Stands(),
            DistributedDataParallel(Stands(), nn.Linear(2, 2)))


if __name__ == "__main__":
    if sys.argv[1] == "alone":
        alone()
    elif sys.argv[1] == "check":
        check(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
