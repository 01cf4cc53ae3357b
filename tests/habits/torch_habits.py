# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""torch_habits.py [NAME...]: habits of users of PyTorch that public reports tell of, with what is right here.

A row is a function and its line above: the sources, and how many ranks try it. Rows of as many ranks run one after the other in
one process group; `alone` rows have a group of their own, since they break it."""

import copy
import datetime
import gc
import importlib
import inspect
import io
import itertools
import os
import pathlib
import pickle
import sys
import tempfile
import threading
import time

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.nn.parallel.distributed import _find_tensors

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "torch"))
from ddp_cases import (carried, check_same_everywhere, check_sums, hooked, in_small_buckets, message_of,  # noqa: E402
                       refused, weights_of)

ALL = "topk_a(density=1)"  # the averages of DDP alone
ROWS = []


def habit(source, ranks=2, alone=False, since="1.13"):
    """A row: the reports, the number of ranks, and the first torch that has what it is about."""
    def added(function):
        ROWS.append((function, source, ranks, alone, tuple(map(int, since.split(".")))))
        return function
    return added


class Line(nn.Module):
    """A gradient that the caller gives, for each of some parameters."""

    def __init__(self, parts=1, length=200):
        super().__init__()
        self.parts = nn.ParameterList([nn.Parameter(torch.zeros(length)) for _ in range(parts)])

    def forward(self, gradients, use=None):
        return sum((self.parts[i] * gradients[i]).sum() for i in (range(len(self.parts)) if use is None else use))


def rank_():
    return dist.get_rank()


def own(length=200, step=0, parts=1):
    """Gradients of this rank in a step."""
    return torch.randn(parts, length, generator=torch.Generator().manual_seed(100 * step + rank_()))


def with_and_without(train, made, scheme=ALL, how=None, **of_ddp):
    """The weights after `train(ddp)` with the hook are those without it, on each rank."""
    weights = []
    for is_hooked in (False, True):
        torch.manual_seed(1)
        ddp = DistributedDataParallel(made(), **of_ddp)
        if is_hooked:
            ddp.register_comm_hook(oktopk_torch.state(ddp, scheme, **(how or {})), oktopk_torch.hook)
        train(ddp)
        weights.append(weights_of(ddp))
    assert torch.allclose(*weights, atol=1e-5), weights


# What calls the hook is not DDP, or DDP is prepared by somebody else.

@habit("pytorch#110662, pytorch#79833: FSDP and the compiled reducer call the hook with a gradient and read no future")
def what_is_no_bucket_raises_at_the_call():
    net = nn.Linear(4, 4, bias=False)
    state = oktopk_torch.state(net, ALL)
    for given in (torch.ones(4, 4), (torch.ones(4, 4), net.weight), None):
        refused("takes a bucket of DDP", oktopk_torch.hook, state, given)
        refused("takes a bucket of DDP", oktopk_torch.hook, None, given)


@habit("pytorch#79114: a hook of FSDP", since="2.6")
def a_sharded_module_is_refused_with_what_to_use():
    from torch.distributed.fsdp import FullyShardedDataParallel, ShardingStrategy, fully_shard
    made = [lambda: FullyShardedDataParallel(nn.Linear(8, 1), sharding_strategy=ShardingStrategy.NO_SHARD, use_orig_params=True,
                                             device_id=torch.device("cpu"))]
    made += [lambda: fully_shard(nn.Linear(8, 1), mesh=torch.distributed.device_mesh.init_device_mesh("cpu", (2,)))]
    for each in made:
        refused("set_all_reduce_hook", oktopk_torch.state, each())


@habit("pytorch#109774: DDP under torch.compile with optimize_ddp='python_reducer'", since="2.6", alone=True)
def the_compiled_reducer_is_an_error():
    import torch._dynamo
    try:
        torch.compile(torch.sin)(torch.ones(8))
    except Exception:  # pylint: disable=broad-except  # of torch, which has no compiler here, or none of its own headers
        return  # torch 2.6 compiles the backward pass, and says so before we are asked
    with torch._dynamo.config.patch(optimize_ddp="python_reducer"), \
            torch._dynamo.utils.maybe_enable_compiled_autograd(True, fullgraph=False):
        ddp, _ = hooked(nn.Linear(8, 1), ALL)
        try:
            torch.compile(ddp, backend="eager")(torch.full((4, 8), 1.0 + rank_())).square().mean().backward()
        except Exception as error:  # pylint: disable=broad-except  # whatever dynamo makes of it
            assert "takes a bucket of DDP" in str(error), error
        else:
            raise AssertionError("no error came")


@habit("open-mmlab/mmcv train_step; accelerate#1726; Lightning#20328: prepare_for_backward called by the program")
def a_program_that_prepares_the_reducer_is_averaged():
    def train_step(ddp, optimizer, gradients):
        optimizer.zero_grad(set_to_none=True)
        ddp.reducer.prepare_for_forward()
        ddp.reducer._rebuild_buckets()
        loss = ddp.module(gradients, (0, 1))
        ddp.reducer.prepare_for_backward(list(_find_tensors(loss)))
        loss.backward()
        optimizer.step()

    def without_sync_and_then_with(ddp, optimizer, gradients):
        optimizer.zero_grad(set_to_none=True)
        with ddp.no_sync():
            first, second = ddp(gradients, (0, 1)), ddp(2 * gradients, (0, 1))
            first.backward()
        ddp.reducer.prepare_for_backward(list(_find_tensors(second)))
        second.backward()
        optimizer.step()

    def two_losses(ddp, optimizer, gradients):
        ddp.reducer.prepare_for_forward()
        if hasattr(ddp, "num_iterations"):
            ddp.num_iterations += 1
        for use in ((0,), (1,)):
            optimizer.zero_grad(set_to_none=True)
            loss = ddp.module(gradients, use)
            ddp.reducer.prepare_for_backward(list(_find_tensors(loss)))
            loss.backward()
            optimizer.step()

    def by_ddp_and_then_not(ddp, optimizer, gradients):
        with ddp.no_sync():
            ddp(gradients, (0, 1)).backward()
        ddp(gradients, (0,)).backward()
        optimizer.step()

    for one_step in (train_step, without_sync_and_then_with, two_losses, by_ddp_and_then_not):
        def train(ddp, one_step=one_step):
            optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
            for step in range(3):
                one_step(ddp, optimizer, own(64, step, 3))
        with_and_without(train, lambda: Line(3, 64), find_unused_parameters=True)


# What the framework hands out is not the module.

class Wrapper(nn.Module):
    """As what torch.compile and Fabric hand out."""

    def __init__(self, inner):
        super().__init__()
        self.wrapped = inner


@habit("Lightning#18581, Lightning#18798, pytorch#111279: the state is made of a wrapper of DDP", ranks=3)
def the_ddp_module_below_a_wrapper_is_found():
    pairs = [dist.new_group([0, 1]), dist.new_group([2])]
    wrappers = [Wrapper, lambda each: Wrapper(Wrapper(each))]
    if torch.__version__ >= (2, 6):
        wrappers.append(lambda each: torch.compile(each, backend="eager"))
    for wrap in wrappers:
        ddp = DistributedDataParallel(nn.Linear(8, 1, bias=False), process_group=pairs[0] if rank_() < 2 else pairs[1])
        state = oktopk_torch.state(wrap(ddp), ALL)
        ddp.register_comm_hook(state, oktopk_torch.hook)
        ddp(torch.full((1, 8), 1.0 + rank_())).sum().backward()
        assert (ddp.module.weight.grad == (1.5 if rank_() < 2 else 3)).all(), ddp.module.weight.grad
        assert state.last_step()["ranks"] == (2 if rank_() < 2 else 1)
    refused("of each DDP module", oktopk_torch.state, nn.ModuleList([ddp, nn.Linear(1, 1)]))
    refused("of each DDP module", oktopk_torch.state, nn.ModuleList([ddp, DistributedDataParallel(nn.Linear(1, 1))]))
    refused("not of dict", oktopk_torch.state, {"model": ddp})


@habit("Lightning docs: ddp_comm_state is made before DDP is; DDP has another group", ranks=3)
def a_state_of_the_module_inside_learns_its_ddp():
    pairs, net = [dist.new_group([0, 1]), dist.new_group([2])], nn.Linear(8, 1, bias=False)
    state = oktopk_torch.state(net, ALL)
    other = DistributedDataParallel(net, process_group=pairs[0] if rank_() < 2 else pairs[1])
    other.register_comm_hook(state, oktopk_torch.hook)
    refused("make the state of the DDP module", other(torch.ones(1, 8)).sum().backward)
    if torch.__version__ >= (2, 6):
        replicate, net = importlib.import_module("torch.distributed._composable").replicate, nn.Linear(8, 1, bias=False)
        replicate(net, process_group=pairs[0] if rank_() < 2 else pairs[1]).register_comm_hook(
            oktopk_torch.state(net, ALL), oktopk_torch.hook)
        refused("make the state of the DDP module", net(torch.ones(1, 8)).sum().backward)
    net = Line(2, 8)
    state = oktopk_torch.state(net, "topk_a(density=0.5)")
    ddp = DistributedDataParallel(net, find_unused_parameters=True)
    ddp.register_comm_hook(state, oktopk_torch.hook)
    ddp(own(8, 0, 2)).backward()
    waiting = carried(state)[0]["parts.1"]
    ddp(own(8, 1, 2), (0,)).backward()
    assert waiting.count_nonzero() > 0 and torch.equal(carried(state)[0]["parts.1"], waiting)


# Something about the parameters changes after the state was made.

@habit("composer#147, pytorch#79069: channels_last after DDP, or after the state")
def residuals_go_with_their_elements_into_another_memory_format():
    for density, when in ((1, "DDP"), (0.02, "DDP"), (1, "state"), (0.02, "state")):
        torch.manual_seed(3)
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(8 * 36, 300), nn.Linear(300, 1000))  # other buckets later
        ddp = DistributedDataParallel(net, gradient_as_bucket_view=True)
        if when == "DDP":
            ddp.to(memory_format=torch.channels_last)
        state = oktopk_torch.state(ddp, f"topk_a(density={density})")
        ddp.register_comm_hook(state, oktopk_torch.hook)
        if when == "state":
            ddp.to(memory_format=torch.channels_last)
        weight = net[0].weight
        went_in, came_out = torch.zeros(weight.shape), torch.zeros(weight.shape)
        for step in range(5):
            ddp.zero_grad(set_to_none=True)
            inputs = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(10 * step + rank_()))
            went_in += torch.autograd.grad(net(inputs).square().sum(), weight)[0]
            ddp(inputs).square().sum().backward()
            came_out += weight.grad
        assert state.state_dict()["orders"][0] == weight.stride()
        again = oktopk_torch.state(ddp, f"topk_a(density={density})")  # of the module as it is now
        again.load_state_dict(state.state_dict())
        residual = torch.empty_like(weight.detach())
        residual.as_strided((weight.numel(),), (1,)).copy_(carried(state)[0]["0.weight"])
        check_sums(residual.contiguous(), came_out.contiguous(), went_in.contiguous(), rtol=1e-3, atol=1e-2)
    ddp, _ = hooked(nn.Conv2d(3, 8, 3), ALL)
    for _step in range(3):
        ddp.zero_grad(set_to_none=True)
        ddp(torch.ones(1, 3, 8, 8)).sum().backward()
    ddp.to(memory_format=torch.channels_last)
    ddp.zero_grad(set_to_none=True)
    refused("the memory_format of weight has changed", ddp(torch.ones(1, 3, 8, 8)).sum().backward)


@habit("pytorch#12603: a parameter is replaced, as weights are tied, before the state and after it")
def a_parameter_that_was_replaced_is_what_ddp_makes_of_it():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.head, self.embedding = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

        def forward(self, inputs):
            return self.head(self.embedding(inputs))

    for before in (True, False):
        gradients = []
        for is_hooked in (False, True):
            torch.manual_seed(2)
            ddp = DistributedDataParallel(Tied(), find_unused_parameters=True)
            if before:
                ddp.module.head.weight = ddp.module.embedding.weight
            if is_hooked:
                state = oktopk_torch.state(ddp, ALL)
                ddp.register_comm_hook(state, oktopk_torch.hook)
            if not before:
                ddp.module.head.weight = ddp.module.embedding.weight
            for _step in range(3):
                ddp.zero_grad()
                ddp(torch.full((1, 4), 1.0 + rank_())).sum().backward()
            gradients.append(ddp.module.embedding.weight.grad)
        assert torch.allclose(*gradients)
        assert sorted(state.state_dict()["parameters"])[-1] == ("replaced.0" if before else "head.weight")
    ddp, _ = hooked(nn.Linear(3, 5), ALL)
    ddp.module.bias = nn.Parameter(torch.zeros(5))
    other = DistributedDataParallel(ddp.module)
    other.register_comm_hook(oktopk_torch.state(ddp, ALL), oktopk_torch.hook)
    refused("of shape (5,), is not of the module", other(torch.ones(1, 3)).sum().backward)


@habit("pytorch#34904: a module is turned to another type after DDP was made, which DDP then reduces no longer, without a word")
def a_module_of_another_type_is_an_error():
    for turn in (nn.Module.double, nn.Module.bfloat16):
        ddp, _ = hooked(nn.Linear(8, 4, bias=False), ALL)
        ddp(torch.ones(1, 8)).sum().backward()
        turn(ddp)
        ddp.zero_grad(set_to_none=True)
        refused("weight is of type", ddp(torch.ones(1, 8, dtype=ddp.module.weight.dtype)).sum().backward)


# Gradients that are thrown away, or added to.

@habit("horovod#796, Lightning#666: a pass of another loss leaves gradients, which zero_grad throws away")
def gradients_that_are_thrown_away_do_not_come_back():
    for how in ("undo", "no_sync"):
        ddp, state = hooked(Line(), "topk_a(density=0.1)", {"momentum": 0.9})
        optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
        for _step in range(10):
            optimizer.zero_grad()
            if how == "undo":
                ddp(torch.full((1, 200), 1000.0)).backward()
                state.undo()
            else:
                with ddp.no_sync():
                    ddp(torch.full((1, 200), 1000.0)).backward()
            optimizer.zero_grad()
            ddp(torch.zeros(1, 200)).backward()
            optimizer.step()
        assert weights_of(ddp).count_nonzero() == 0 and state.residual_norm() == 0
    state.undo()
    refused("no step to take back", state.undo)


@habit("WeatherGenerator#2724, pytorch#64636: the program skips the step of the optimizer")
def a_step_that_is_taken_back_loses_nothing():
    for momentum in (0, 0.9):
        ddp, state = hooked(Line(3), "ok_topk(density=0.1)", {"momentum": momentum}, made=in_small_buckets)
        went_in, came_out = torch.zeros(3, 200), torch.zeros(3, 200)
        for step in range(8):
            ddp.zero_grad()
            before = carried(state)
            ddp(own(200, step, 3)).backward()
            if step % 3 == 1:
                state.undo()
                assert all(torch.equal(one, other[name]) for now, other in zip(carried(state), before) for name, one in now.items())
                continue
            went_in += own(200, step, 3)
            came_out += torch.stack([each.grad for each in ddp.parameters()])
        if momentum == 0:
            check_sums(torch.stack(list(carried(state)[0].values())), came_out, went_in)
    refused("undo", oktopk_torch.state(ddp).undo)
    last = rank_() == dist.get_world_size() - 1
    ddp.zero_grad(set_to_none=True)
    refused("not finite", ddp(own(200, 9, 3) * (float("nan") if last else 1)).backward)
    before = carried(state)[0]
    state.undo()  # it was taken back already
    assert all(torch.equal(one, before[name]) for name, one in carried(state)[0].items())


@habit("pytorch#64636, mmf#1073: a loop with a key for each parameter skips a step that one of them has failed")
def a_step_of_several_keys_fails_as_a_whole():
    for is_async in (False, True):
        average, last = oktopk_torch.averager(None, "topk_a(density=0.1)"), rank_() == dist.get_world_size() - 1
        went_in, came_out = torch.zeros(3, 100), torch.zeros(3, 100)
        for step in range(9):
            gradients = own(100, step, 3)
            given = gradients.clone()
            if step % 3 == 2:
                given[1, 7] = float("nan") if last else given[1, 7]
            try:
                if is_async:
                    for each in [average(one, key=key, async_op=True) for key, one in enumerate(given)]:
                        each.wait()
                else:
                    for key, one in enumerate(given):
                        average(one, key=key)
            except oktopk_torch.Error as error:
                assert step % 3 == 2 and "not finite: index 7 of 1" in str(error) and "taken back with it" in str(error), error
                continue
            assert step % 3 != 2
            went_in += gradients
            came_out += given
        check_sums(torch.stack(list(carried(average)[0].values())), came_out, went_in)
        average(torch.ones(100), key=0)
        refused("is None; taken back with it: the calls of this step of 0", average, None if last else torch.ones(100), key="new")
        refused("disagree", average, torch.ones(100), key="x" if last else "y")
        assert torch.equal(average(torch.zeros(9), key="z"), torch.zeros(9))
    first, second = (average(torch.full((100,), float("nan")), key=key, async_op=True) for key in (0, 1))
    refused("not finite: index 0 of 0", second.wait)  # a call behind a failed one of its step is not made
    refused("not finite: index 0 of 0", first.wait)
    average(torch.ones(100), key=0)
    average(torch.ones(100), key=1)
    before = average.residual_norm()
    for key in (0, 1):
        average(torch.ones(100), key=key)
    average.undo()
    assert average.residual_norm() == before


@habit("accelerate#1153, 3DTopia/LGM#95: two passes a step without no_sync, or with it round backward alone, and momentum")
def with_momentum_a_gradient_that_is_there_already_is_an_error():
    for momentum, how in ((0.0, "without"), (0.9, "without"), (0.9, "round backward"), (0.9, "no_sync"), (0.9, "zeros")):
        def train(ddp, momentum=momentum, how=how):
            is_hooked = isinstance(how, str) and bool(ddp.parameters)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.1, momentum=0 if train.hooked else momentum)
            for step in range(3):
                optimizer.zero_grad(set_to_none=how != "zeros")
                for micro in range(1 if how == "zeros" else 2):
                    gradients = torch.full((1, 200), 1.0 + rank_() + micro + step)
                    if how == "no_sync" and micro == 0:
                        with ddp.no_sync():
                            ddp(gradients).backward()
                    elif how == "round backward" and micro == 0:
                        loss = ddp(gradients)
                        with ddp.no_sync():
                            loss.backward()
                    else:
                        ddp(gradients).backward()
                optimizer.step()
            train.hooked = is_hooked
        train.hooked = False
        if how in ("no_sync", "zeros") or momentum == 0:
            with_and_without(train, Line, how={"momentum": momentum})
        else:
            ddp, _ = hooked(Line(), ALL, {"momentum": momentum})
            refused("the gradient of parts.0 was there before the pass", train, ddp)


@habit("pytorch#22436: an exception breaks a backward pass off; the program goes on with the next batch")
def a_pass_that_was_broken_off_has_changed_nothing():
    ddp, state = hooked(Line(2), "topk_a(density=0.1)", made=in_small_buckets)
    for step in range(3):
        ddp.zero_grad()
        ddp(own(200, step, 2)).backward()
    before, fails = carried(state)[0], []

    def fail(gradient):
        if fails:
            raise MemoryError("as of a device")
        return gradient
    ddp.module.parts[0].register_hook(fail)
    fails.append(0)
    try:
        ddp(own(200, 3, 2)).backward()
    except MemoryError:
        fails.clear()
    assert not fails
    assert all(torch.equal(one, before[name]) for name, one in carried(state)[0].items())  # as the weights are
    if hasattr(ddp, "num_iterations"):
        return  # that DDP cannot go on
    state.undo()
    assert all(torch.equal(one, before[name]) for name, one in carried(state)[0].items())


@habit("pytorch#185915: GradScaler with SGD, accumulation and clipping, from a scale that is too large", since="2.6")
def a_scaler_finds_its_scale_and_clips_as_without_the_hook():
    found = []
    for is_hooked in (False, True):
        ddp, scales = DistributedDataParallel(Line()), []
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 126, growth_interval=3)
        if is_hooked:
            oktopk_torch.attach(ddp, ALL, grad_scaler=scaler)
        optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
        for step in range(12):
            optimizer.zero_grad()
            with ddp.no_sync():
                scaler.scale(ddp(100 * own(step=2 * step))).backward()
            scaler.scale(ddp(100 * own(step=2 * step + 1))).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            scales.append(scaler.get_scale())
        found.append((scales, weights_of(ddp)))
    assert found[0][0] == found[1][0] and found[0][0][0] < 2.0 ** 126 and len(set(found[0][0][-4:])) > 1, found
    assert torch.allclose(found[0][1], found[1][1], atol=1e-5) and found[0][1].count_nonzero(), found


@habit("torchtitan#1929, cosmos-framework#161: FSDP2 that accumulates, and reduces each time or once", since="2.14")
def gradients_that_fsdp2_accumulates_are_averaged():
    from torch.distributed import fsdp
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2, 1), mesh_dim_names=("replica", "shard"))
    for scheme, later in itertools.product((ALL, "topk_a(density=0.1)"), ("set_requires_gradient_sync", "set_requires_all_reduce", None)):
        net = fsdp.fully_shard(Line(), mesh=mesh["shard"])
        average, calls = oktopk_torch.averager(mesh["replica"].get_group(), scheme), []

        def reduce(gradient, average=average, calls=calls):
            calls.append(average(gradient, key="all"))
        net.set_all_reduce_hook(reduce)
        went_in, came_out = torch.zeros(200), torch.zeros(200)
        for step in range(4):
            net.zero_grad()
            for micro in range(2):
                if later:
                    getattr(net, later)(micro == 1)
                gradients = own(step=2 * step + micro)
                went_in += gradients[0]
                net(gradients).backward()
            came_out += net.parts[0].grad.to_local()
        check_sums(carried(average)[0]["all"], came_out, went_in)
        assert len(calls) == (4 if later == "set_requires_gradient_sync" else 8)
        assert (average.residual_norm() == 0) == (scheme == ALL)


@habit("pytorch#47562: autograd.grad of a head beside a pass that does not use it")
def a_gradient_that_is_only_looked_at_is_no_use():
    for momentum in (0, 0.9):
        ddp, state = hooked(Line(2), "topk_a(density=0.25)", {"momentum": momentum}, made=in_small_buckets, find_unused_parameters=True)
        for step in range(3):
            ddp.zero_grad(set_to_none=True)
            ddp(own(200, step, 2)).backward()
            torch.autograd.grad((ddp.module.parts[0] * 2).sum(), [ddp.module.parts[0]])  # with its gradient there
        before = carried(state)[0]["parts.1"]
        ddp.zero_grad(set_to_none=False)
        loss = ddp(own(200, 3, 2), (0,))
        torch.autograd.grad((ddp.module.parts[1] * 2).sum(), [ddp.module.parts[1]])
        loss.backward()
        assert before.count_nonzero() > 0 and torch.equal(carried(state)[0]["parts.1"], before)
        assert ddp.module.parts[1].grad.count_nonzero() == 0


# Keys and values.

@habit("torchft#76: average(p.grad) for each parameter")
def a_call_without_a_key_is_refused():
    average = oktopk_torch.averager(None, ALL)
    for call in (lambda: average(torch.ones(8)), lambda: average.average(torch.ones(8))):
        try:
            call()
        except TypeError as error:
            assert "key" in str(error), error
        else:
            raise AssertionError("no error came")
    for key in (None, 1.5, ("a", 1), torch.ones(2), nn.Linear(1, 1).weight):
        refused("a key is a text or an integer", average, torch.ones(8), key=key)
    assert (average(torch.full((8,), 1.0 + rank_()), key=1) == 1.5).all()


@habit("deepmd-kit#4147, nerfstudio#3683: numbers and names out of NumPy in a checkpoint")
def what_numpy_gives_is_saved_as_plain_values():
    numpy = __import__("numpy")
    average = oktopk_torch.averager(None, numpy.str_("topk_a"))
    for key in (*numpy.arange(2), numpy.str_("x"), True):
        average(torch.ones(100), key=key)
    average.set_density(numpy.linspace(0.5, 0.1, 3)[1])
    file, how = io.BytesIO(), {"weights_only": True} if "weights_only" in inspect.signature(torch.load).parameters else {}
    torch.save(average.state_dict(), file)
    file.seek(0)
    saved = torch.load(file, **how)
    again = oktopk_torch.averager(None, "topk_a")
    again.load_state_dict(saved)
    assert again.density == average.density and saved["parameters"] == [0, 1, "x"], saved["parameters"]
    average(torch.ones(100), key=0)
    again(torch.ones(100), key=0)
    assert again.residual_norm() == average.residual_norm()


@habit("Lightning#14198, Lightning#1640: a schedule in the arguments of spawn, in hyperparameters, in a copy")
def a_schedule_is_a_value():
    made = oktopk_torch.density_schedule(0.01, initial=1.0, warm_up=8, stages=4)
    file = io.BytesIO()
    torch.save({"hparams": made}, file)
    file.seek(0)
    loaded = torch.load(file, **{"weights_only": False} if "weights_only" in inspect.signature(torch.load).parameters else {})
    for each in (pickle.loads(pickle.dumps(made)), copy.deepcopy({"density": made})["density"], loaded["hparams"]):
        assert [each(step) for step in range(12)] == [made(step) for step in range(12)]


@habit("pytorch#116683, torchtitan#4754: a DTensor given to native code", since="2.6")
def a_tensor_without_memory_is_refused_by_name():
    from torch.distributed.tensor import DTensor, Replicate, Shard
    mesh, average = torch.distributed.device_mesh.init_device_mesh("cpu", (2,)), oktopk_torch.averager(None, ALL)
    for placement in (Replicate(), Shard(0)):
        made = DTensor.from_local(torch.full((6,), 1.0 + rank_()), mesh, [placement], run_check=False)
        refused("is a DTensor without memory of its own: give its local part, to_local()", average, made, key="x")
        assert (average(made.to_local(), key="x") == 1.5).all()
        module = nn.ParameterDict({"w": nn.Parameter(made)})
        refused("the parameter w is a DTensor", oktopk_torch.state, module)
    refused("NestedTensor" if torch.__version__ < (2, 6) else "without memory", average,
            torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), key="nested")
    said = []
    torch.func.vmap(lambda each: (said.append(message_of(average, each, key="v")), each)[1])(torch.ones(1, 4))
    assert "without memory" in said[0]


@habit("pytorch#59158: the imaginary part of a conjugate has the negative bit")
def a_tensor_with_the_negative_bit_has_its_own_values():
    average = oktopk_torch.averager(None, ALL)
    made = torch.complex(torch.zeros(1), torch.full((1,), 1.0 + rank_())).conj().imag
    assert made.is_neg() and made.item() == -1.0 - rank_()
    assert average(made, key="x").item() == -1.5 and made.item() == -1.5
    made = made.resolve_neg() if rank_() else made  # what lies in memory differs in its sign
    assert average(made, key="x").item() == -1.5 and made.item() == -1.5


@habit("pytorch#104935, NVIDIA/TransformerEngine#1277: a container calls its torch 2.6.0a0")
def a_version_before_its_release_is_taken():
    version = torch.__version__
    try:
        torch.__version__ = type(version)(".".join(version.split(".")[:2]) + ".0a0+df5bbc09d1")
        sys.modules.pop("oktopk_torch")
        again = __import__("oktopk_torch")
        assert (again.averager(dist.new_group([0, 1]), "dense")(torch.full((8,), 1.0 + rank_()), key="x") == 1.5).all()
        assert again.DDP_COUNTS_WITHOUT_SYNC == oktopk_torch.DDP_COUNTS_WITHOUT_SYNC
    finally:
        torch.__version__, sys.modules["oktopk_torch"] = version, oktopk_torch


@habit("fastai#217, ipython#12399: the module is loaded again, as %autoreload does")
def a_state_from_before_a_reload_goes_on():
    ddp, state = hooked(Line(), ALL)
    ddp(torch.full((1, 200), 1.0 + rank_())).backward()
    importlib.reload(oktopk_torch)
    ddp.zero_grad()
    ddp(torch.full((1, 200), 1.0 + rank_())).backward()
    assert (ddp.module.parts[0].grad == 1.5).all()
    state.load_state_dict(state.state_dict())
    assert (oktopk_torch.averager(None, ALL)(torch.full((8,), 1.0 + rank_()), key="x") == 1.5).all()


# Saving at any time, many states, many keys, several groups.

@habit("Lightning#20953, torchtitan#930: a state is saved in the middle of a pass, by a thread or a handler of a signal")
def a_state_that_is_saved_within_a_pass_is_that_before_it():
    ddp, state = hooked(Line(2, 400), "topk_a(k=1)", {"momentum": 0.5}, made=in_small_buckets)
    for step in range(3):
        ddp.zero_grad()
        ddp(own(400, step, 2)).backward()
    before, found, order = state.state_dict(), [], []

    def save(gradient):
        order.append(0)
        if len(order) == 2:  # a bucket has gone, the other has not
            time.sleep(0.1)
            thread = threading.Thread(target=lambda: found.append(state.state_dict()))
            thread.start()
            thread.join()
        return gradient
    for each in ddp.parameters():
        each.register_hook(save)
    ddp.zero_grad()
    ddp(own(400, 3, 2)).backward()
    for now, then in zip(carried(found[0]), carried(before)):
        assert all(torch.equal(one, then[name]) for name, one in now.items())
    after = carried(state)[0]
    assert all(not torch.equal(one, carried(before)[0][name]) for name, one in after.items())
    ddp.zero_grad()
    ddp(own(400, 4, 2)).backward()
    assert not torch.equal(carried(state)[0]["parts.0"], after["parts.0"])


@habit("pytorch#75666, pytorch#79334, pytorch#102721: a state is saved whole, and what was loaded is registered with the hook")
def a_state_that_was_saved_whole_goes_on_by_load_state_dict():
    ddp, state = hooked(Line(), "topk_a(density=0.1)")
    ddp(own()).backward()
    file = io.BytesIO()
    torch.save({"comm_hook_state": state}, file)
    file.seek(0)
    found = torch.load(file)["comm_hook_state"]
    again = DistributedDataParallel(Line())
    again.register_comm_hook(found, oktopk_torch.hook)
    refused("load that into it with load_state_dict", again(own()).backward)
    ddp, again = hooked(Line(), "topk_a(density=0.1)")
    again.load_state_dict(found)
    assert again.residual_norm() == state.residual_norm() > 0


@habit("pytorch#71606, pytorch#67570: the optimizer steps in a callback of the hook's future", alone=True)
def a_callback_of_a_failed_pass_moves_no_weight():
    def overlapped(state, bucket):
        def step(_):
            for weight, gradient in zip(bucket.parameters(), bucket.gradients()):
                weight.data.add_(gradient, alpha=-0.1)
            return bucket.buffer()
        return oktopk_torch.hook(state, bucket).then(step)

    for how in ({}, {"skip_step_on_fault": True}):
        ddp = DistributedDataParallel(nn.Linear(4, 1, bias=False))
        ddp.register_comm_hook(oktopk_torch.state(ddp, ALL, **how), overlapped)
        for _step in range(2):
            ddp.zero_grad(set_to_none=True)
            ddp(torch.full((1, 4), 1.0 + rank_())).sum().backward()
        before = weights_of(ddp)
        inputs = torch.full((1, 4), float("nan") if rank_() == 1 else 1.0)
        if how:
            ddp(inputs).sum().backward()
        else:
            refused("not finite", ddp(inputs).sum().backward)
        assert torch.equal(before, weights_of(ddp)), (before, weights_of(ddp))
        check_same_everywhere(weights_of(ddp))


@habit("pytorch#63211, pytorch#65194: a module is wrapped again and again, each time with a new state")
def hooks_of_states_that_are_gone_do_not_stay():
    net = nn.Linear(10, 10)
    for _round in range(10):
        ddp, state = hooked(net, "topk_a")
        ddp(torch.ones(1, 10)).sum().backward()
        del ddp, state
        gc.collect()
    assert max(len(each._backward_hooks or ()) for each in net.parameters()) <= 1


@habit("DeepSpeed#3151, fairscale#327: a call for each of many small tensors", ranks=1, alone=True)
def a_call_takes_as_long_however_many_keys_there_are():
    best = {}
    for count in (500, 8000):
        average = oktopk_torch.averager(None, "topk_a")
        for _round in range(3):
            began = time.process_time()
            for key in range(count):
                average(torch.ones(8), key=key)
            best[count] = min(best.get(count, 1e9), (time.process_time() - began) / count)
    assert best[8000] < 3 * best[500], best


@habit("torchrec#4149, torchft#206: asynchronous averages over several groups, in an order of the rank's own", ranks=3, alone=True)
def averages_of_several_groups_end_in_any_order():
    pairs = ((0, 1), (1, 2), (0, 2))
    first = {0: (0, 2), 1: (1, 0), 2: (2, 1)}[rank_()]
    groups = [dist.new_group(pair, timeout=datetime.timedelta(seconds=20)) for pair in pairs]
    average = {i: oktopk_torch.averager(groups[i], ALL) for i in sorted(first)}
    for _round in range(5):  # keys are new in the first
        futures = {i: average[i](torch.full((100,), 1.0 + rank_()), key="x", async_op=True) for i in first}
        for i, each in futures.items():
            assert (each.wait() == 1 + sum(pairs[i]) / 2).all()


@habit("nora#8: the state is made on rank 0 alone", alone=True)
def a_collective_that_one_rank_alone_makes_says_so():
    if rank_() == 0:
        refused("collective", oktopk_torch.state, nn.Linear(2, 2), ALL)
    else:
        time.sleep(12)  # the limit of the group is half of that


ONE_RANK_ALONE = a_collective_that_one_rank_alone_makes_says_so.__name__


def run(rank, ranks, folder, rows, limit):
    torch.set_num_threads(1)
    os.environ.update(USE_LIBUV="0")
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=limit))
    for number, function in enumerate(rows):
        pathlib.Path(folder, f"{rank}").write_text(str(number), "ascii")
        globals()[function]()
        if len(rows) > 1:
            dist.barrier()
    os._exit(0)  # a group that a row has broken is not waited for


def tried(ranks, rows):
    """The rows that fail; those behind one of them begin in a new group."""
    failed = []
    while rows:
        with tempfile.TemporaryDirectory() as folder:
            try:
                torch.multiprocessing.spawn(run, (ranks, folder, rows, 6 if rows == [ONE_RANK_ALONE] else 300), ranks)
                rows = []
            except Exception as error:  # pylint: disable=broad-except
                number = max(int(each.read_text("ascii")) for each in pathlib.Path(folder).iterdir() if each.name.isdigit())
                print(f"{rows[number]}: {error}", flush=True)
                failed.append(rows[number])
                rows = rows[number + 1:]
    return failed


def main(names):
    here = tuple(map(int, torch.__version__.split("+")[0].split(".")[:2]))
    rows = [row for row in ROWS if row[4] <= here and (not names or row[0].__name__ in names)]
    together, failed = {}, []
    for function, _, ranks, alone, _ in rows:
        together.setdefault((ranks, function.__name__ if alone else ""), []).append(function.__name__)
    for (ranks, _), of in together.items():
        failed += tried(ranks, of)
    for function, source, *_ in rows:
        print("FAILED" if function.__name__ in failed else "right ", function.__name__.replace("_", " "), f"({source})")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main(sys.argv[1:])
