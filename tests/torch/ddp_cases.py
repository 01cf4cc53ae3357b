# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ddp_cases.py RANKS [CASE...]: the cases of check_ddp_hook.py for so many processes, or some, one after the other.

A case that fails ends all of them. It says what it is about; a scheme is one of oktopk's catalogue."""

import contextlib
import copy
import importlib
import io
import itertools
import pathlib
import shutil
import struct
import sys
import tempfile
import threading
import time
import unittest.mock
import warnings

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

REUSED = "ok_topk(density=0.05, local_select=reused, global_select=reused, tau_prime=4, tau=3)"
# Of cases that run with more schemes than REUSED.
MORE = {
    "test_nothing_is_lost": ["ok_topk(density=0.05, format=packed, values=fixed4)"],
    "test_goes_on_to_the_bit": ["topk_dsa(density=0.1)"],
    "test_unused_parameters_lose_nothing": ["ok_topk(density=0.1, format=packed, values=sign)", "gtopk(density=0.1)"],
    "test_averages_by_key_are_those_of_the_hook": ["ok_topk(format=packed, values=bfloat16)"],
}
TRAINED = [("sgd", REUSED), ("adamw", REUSED), ("corrected", REUSED), ("adamw", "gtopk(density=0.05)"),
           ("sgd", "ok_topk(density=0.05, format=packed, values=bfloat16)"), ("sgd", "topk_a(density=0.05)"),
           ("adamw", "ring_chunked(codec=block_float)")]


class Crossed(nn.Module):
    """A network that uses its layers in another order than that of its parameters: DDP builds other buckets once."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(64, 1)
        self.first = nn.Linear(8, 64)
        self.middle = nn.Linear(64, 64)

    def forward(self, inputs):
        return self.last(torch.relu(self.middle(torch.relu(self.first(inputs)))))


def loss_of(model, step):
    """On the inputs of this rank in the step: the same whenever it is asked."""
    inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(1000 * step + dist.get_rank()))
    return nn.functional.mse_loss(model(inputs).float(), inputs.sin().sum(1, keepdim=True))


def move(optimizer, loss):
    """One step of an optimizer; the loss before it."""
    optimizer.zero_grad()
    value = loss()
    value.backward()
    optimizer.step()
    return value.item()


class Training:
    """A model with DDP, the hook and an optimizer."""

    def __init__(self, scheme, optimizer="sgd", rate=0.01, cap=25.0, static=False, **options):
        """`optimizer` is sgd, adamw, or corrected: plain SGD, with the momentum in the state."""
        torch.manual_seed(5)
        self.ddp = DistributedDataParallel(Crossed(), bucket_cap_mb=cap, static_graph=static)
        self.borders, self.losses = [], []  # of the buckets of each iteration; of the last `steps`
        self.state = oktopk_torch.state(self.ddp, scheme, momentum=0.9 if optimizer == "corrected" else 0.0, **options)
        self.ddp.register_comm_hook(self.state, self.hook)
        self.optimizer = {"sgd": lambda p: torch.optim.SGD(p, rate, momentum=0.9),
                          "corrected": lambda p: torch.optim.SGD(p, rate),
                          "adamw": lambda p: torch.optim.AdamW(p, rate)}[optimizer](self.ddp.parameters())

    def hook(self, state, bucket):
        if bucket.index() == 0:
            self.borders.append([])
        self.borders[-1].append([each.numel() for each in bucket.parameters()])
        return oktopk_torch.hook(state, bucket)

    def step(self, number):
        return move(self.optimizer, lambda: loss_of(self.ddp, number))

    def steps(self, first, end):
        """Itself, after these steps."""
        self.losses = [self.step(number) for number in range(first, end)]
        return self

    def weights(self):
        return weights_of(self.ddp)

    def saved(self):
        """All that a program would save, through a file."""
        return through_a_file([self.ddp.state_dict(), self.optimizer.state_dict(), self.state.state_dict()])

    def load(self, saved):
        self.ddp.load_state_dict(saved[0])
        self.optimizer.load_state_dict(saved[1])
        self.state.load_state_dict(saved[2])


def weights_of(ddp):
    return torch.cat([each.detach().flatten() for each in ddp.parameters()])


def of_all_ranks(tensor):
    every = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(every, tensor)
    return every


def bytes_of(saved):
    """What `oktopk::save` has written, as a tensor."""
    (data,), = saved["state"].values()
    return data


def with_bytes(saved, data, rank=None):
    """A state with other bytes, as if another rank had saved it."""
    return {**saved, "state": {f"rank{dist.get_rank() if rank is None else rank}": (data,)}}


def carried(state, kind=torch.float32):
    """Residuals and velocities by parameter, from what `oktopk::save` has written: behind a header of 32 bytes the name of
    the type, then arrays, each behind its length: lengths, residuals, velocities, and what belongs to the buckets."""
    saved = state if isinstance(state, dict) else state.state_dict()
    data, at = bytes_of(saved).numpy().tobytes(), 32

    def array(kind):
        nonlocal at
        count, = struct.unpack_from("<Q", data, at)
        found = torch.frombuffer(bytearray(data), dtype=kind, count=count, offset=at + 8) if count else torch.zeros(0, dtype=kind)
        at += 8 + count * found.element_size()
        return found
    assert bytes(array(torch.uint8).tolist()).endswith(b"-bit values, over any_allreduce")
    lengths = array(torch.int64).tolist()
    return [dict(zip(saved["parameters"], found.split(lengths))) if found.numel() else {}
            for found in (array(kind), array(kind))]


def without_schemes(saved):
    """A state with its buckets, and without the states of the algorithm for them; sound by its digest."""
    data, at = bytes_of(saved).numpy().tobytes(), 32
    for size in (1, 8, 4, 4, 8, 8):  # bytes of an item, of the arrays up to the tensors of the buckets
        at += 8 + size * struct.unpack_from("<Q", data, at)[0]
    data, digest = data[32:at] + bytes(8), 14695981039346656037
    for byte in data:
        digest = (digest ^ byte) * 1099511628211 % 2 ** 64
    data = bytes_of(saved).numpy().tobytes()[:16] + struct.pack("<QQ", len(data), digest) + data
    rank, = saved["state"]
    return with_bytes(saved, torch.frombuffer(bytearray(data), dtype=torch.uint8), rank[len("rank"):])


def residuals_of(state):
    """In the order of the parameters."""
    return torch.cat(list(carried(state)[0].values()))


def all_gathered(thing):
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, thing)
    return every


def is_last():
    return dist.get_rank() == dist.get_world_size() - 1


def hooked(module, scheme="ok_topk(density=0.1)", how=None, **of_ddp):
    """A module with DDP and the hook, and the state; `how` are options of the state."""
    ddp = of_ddp.pop("made", DistributedDataParallel)(module, **of_ddp)
    state = oktopk_torch.state(ddp, scheme, **(how or {}))
    ddp.register_comm_hook(state, oktopk_torch.hook)
    return ddp, state


def ddp_takes(kind):
    """Whether DDP broadcasts parameters of the type over Gloo, without a hook: Debian's torch 2.14 refuses float16 and bfloat16."""
    try:
        DistributedDataParallel(nn.Linear(1, 1).to(kind))
    except RuntimeError:
        return False
    return True


def in_small_buckets(module, **of_ddp):
    """DDP with a bucket for each parameter, at the latest from its second iteration on: else its first one takes 1 MiB."""
    with unittest.mock.patch.object(dist, "_DEFAULT_FIRST_BUCKET_BYTES", 1):
        return DistributedDataParallel(module, bucket_cap_mb=0.0001, **of_ddp)


def check_same_everywhere(tensor, *said):
    assert all(torch.equal(each, tensor) for each in of_all_ranks(tensor)), said


def check_sums(residuals, averages, gradients, rtol=1e-4, atol=1e-5, said=None):
    """Over all ranks, residuals and averages add up to the gradients."""
    left = sum(of_all_ranks(residuals)) + dist.get_world_size() * averages
    assert torch.allclose(left, sum(of_all_ranks(gradients)), rtol=rtol, atol=atol), (said, left)


def message_of(call, *arguments, **options):
    """What an Error says that must come."""
    try:
        call(*arguments, **options)
    except oktopk_torch.Error as error:
        return str(error)
    raise AssertionError("no Error came")


def refused(words, call, *arguments, **options):
    said = message_of(call, *arguments, **options)
    assert words in said, said


def trains(optimizer, scheme):
    training = Training(scheme, optimizer, 0.003).steps(0, 200)
    assert sum(training.losses[-10:]) < 0.4 * sum(training.losses[:10]), training.losses
    check_same_everywhere(training.weights())


def test_dense_is_what_ddp_does(_):
    """With the momentum of SGD, and with that of the state, also where DDP builds other buckets."""
    for optimizer, cap in (("sgd", 25.0), ("sgd", 0.01), ("corrected", 0.01)):
        ours = Training("dense", optimizer, cap=cap)
        plain = DistributedDataParallel(copy.deepcopy(ours.ddp.module))
        theirs = torch.optim.SGD(plain.parameters(), 0.01, momentum=0.9)
        for step in range(5):
            ours.step(step)
            move(theirs, lambda: loss_of(plain, step))
            for one, other in zip(ours.ddp.parameters(), plain.parameters()):
                assert optimizer == "corrected" or torch.allclose(one.grad, other.grad, rtol=1e-4, atol=1e-6)
        assert cap > 1 or ours.borders[0] != ours.borders[1]
        assert torch.allclose(ours.weights(), weights_of(plain), rtol=1e-4, atol=1e-6)


def test_nothing_is_lost(scheme):
    """Over all ranks, residuals and averages add up to the gradients, also where DDP builds other buckets."""
    training = Training(scheme, rate=0.0, cap=0.01)
    alone = copy.deepcopy(training.ddp.module)
    gradients = torch.zeros_like(training.weights())
    averages = torch.zeros_like(gradients)
    for step in range(4):
        training.step(step)
        averages += torch.cat([each.grad.flatten() for each in training.ddp.parameters()])
        alone.zero_grad()
        loss_of(alone, step).backward()
        gradients += torch.cat([each.grad.flatten() for each in alone.parameters()])
    assert training.borders[0] != training.borders[1] == training.borders[3]
    residuals = residuals_of(training.state)
    assert residuals.count_nonzero() > 0.3 * residuals.numel()
    check_sums(residuals, averages, gradients)


class Optional(nn.Module):
    """Parameters of which a forward pass uses those that it is asked to."""

    def __init__(self, parts=4, length=40):
        super().__init__()
        torch.manual_seed(3)
        self.parts = nn.ParameterList([nn.Parameter(torch.randn(length)) for _ in range(parts)])

    def forward(self, inputs, use):
        return sum((self.parts[i] * inputs[i]).sum() for i in use)


def use_of(step, rank, parts=4):
    """The parameters that a rank uses in a step: often all, now and then none of them but the first."""
    generator = torch.Generator().manual_seed(7 * step + (rank if step % 3 == 0 else 100))
    drawn = torch.rand(parts, generator=generator)
    return [i for i in range(parts) if i == 0 or drawn[i] < 0.5]


def inputs_of(step, rank, parts=4, length=40):
    return torch.randn(parts, length, generator=torch.Generator().manual_seed(5000 * step + rank))


def test_unused_parameters_lose_nothing(scheme):
    """Parameters that one rank, or no rank, uses in a step: residuals and what the optimizer sees add up to the gradients
    over 200 steps. Also with momentum, buckets of one parameter and of several, gradients that lie in buckets, frozen
    parameters, and passes without synchronisation before, of which DDP counts no use."""
    for how in ({"bucket_cap_mb": 0.0001}, {"gradient_as_bucket_view": True}, {"momentum": 0.9}, {"no_sync": True},
                {"freezes": True}):
        momentum, no_sync, freezes = how.pop("momentum", 0.0), how.pop("no_sync", False), how.pop("freezes", False)
        ddp, state = hooked(Optional(), scheme, {"momentum": momentum}, find_unused_parameters=True, **how)
        ranks, rank, parts = dist.get_world_size(), dist.get_rank(), len(ddp.module.parts)
        went_in = torch.zeros(parts, 40, dtype=torch.float64)
        velocity, seen, waits = torch.zeros_like(went_in), torch.zeros_like(went_in), 0
        for step in range(200):
            ddp.zero_grad(set_to_none=True)
            if freezes and step in (60, 140):
                ddp.module.parts[2].requires_grad_(step == 140)
            uses = [[i for i in use_of(step, r) if not (freezes and i == 2 and 60 <= step < 140)] for r in range(ranks)]
            inputs, gradient = inputs_of(step, rank), torch.zeros(parts, 40, dtype=torch.float64)
            together = set().union(*uses)
            before = [step % parts] if no_sync and step % 2 == 0 and step % parts in together else []
            if before:
                with ddp.no_sync():
                    ddp(inputs, before).backward()
            for i in uses[rank] + before:
                gradient[i] += inputs[i]
            ddp(inputs, uses[rank]).backward()
            assert [each.grad is not None for each in ddp.module.parts] == [i in together for i in range(parts)]
            for i in together:
                velocity[i] = momentum * velocity[i] + gradient[i]
                went_in[i] += velocity[i]
                seen[i] += ddp.module.parts[i].grad
            waits += parts - len(together)
        assert waits > 50
        residuals = residuals_of(state).double().reshape(parts, 40)
        if momentum == 0:  # with factor masking a velocity depends on what was sent
            check_sums(residuals, seen, went_in, atol=1e-3, said=how)
        else:
            velocities = carried(state)[1]
            ddp.zero_grad(set_to_none=True)
            ddp(inputs_of(200, rank), [0]).backward()
            after = carried(state)[1]
            assert torch.equal(after["parts.3"], velocities["parts.3"])
            assert not torch.equal(after["parts.0"], velocities["parts.0"])


def test_a_use_without_synchronisation_is_none(_):
    """DDP before torch 2.4 leaves the gradient of a parameter alone that was used within `no_sync` only: the residual waits as
    well."""
    ddp, state = hooked(Optional(2, 64), find_unused_parameters=True)
    ddp(torch.ones(2, 64), [0, 1]).backward()
    waiting = carried(state)[0]["parts.1"]
    with ddp.no_sync():
        ddp(torch.ones(2, 64), [0, 1]).backward()
    ddp(torch.ones(2, 64), [0]).backward()
    assert waiting.count_nonzero() > 32
    assert torch.equal(carried(state)[0]["parts.1"], waiting) is not (torch.__version__ >= (2, 4))


def test_a_gradient_that_stays_is_not_touched(_):
    """Of a parameter that no rank uses, DDP leaves the gradient as it is, and so does the hook, where it lies in a bucket
    as well; it does not go into the residual."""
    for view in (False, True):
        ddp, state = hooked(Optional(2, 64), "ok_topk(density=0.7)", find_unused_parameters=True,
                            gradient_as_bucket_view=view)
        ddp(torch.ones(2, 64), [0, 1]).backward()
        before, waiting = ddp.module.parts[1].grad.clone(), carried(state)[0]["parts.1"]
        ddp(torch.ones(2, 64), [0]).backward()  # its gradients add up
        assert before.count_nonzero() > 0 and torch.equal(ddp.module.parts[1].grad, before)
        assert waiting.count_nonzero() > 0 and torch.equal(carried(state)[0]["parts.1"], waiting)


def through_a_file(thing):
    file = io.BytesIO()
    torch.save(thing, file)
    file.seek(0)
    return torch.load(file)


def test_a_model_with_a_state_is_copied_and_saved(_):
    """As without one: what the state has put on the model is no obstacle, nor is the state that newer DDP keeps. A copy of a
    state, or of an averager, is what `state_dict` gives."""
    ddp, state = hooked(Optional(2, 8), "topk_a", find_unused_parameters=True)
    ddp(torch.ones(2, 8), [0, 1]).backward()
    assert torch.equal(copy.deepcopy(ddp).module.parts[1], ddp.module.parts[1])
    torch.save(ddp, io.BytesIO())
    average = oktopk_torch.averager(None, "topk_a")
    average(torch.ones(8), key="x")
    for each, again in ((state, oktopk_torch.state(ddp, "topk_a")), (average, oktopk_torch.averager(None, "topk_a"))):
        for copied in (copy.deepcopy(each), through_a_file(each)):
            again.load_state_dict(copied)
            assert again.residual_norm() == each.residual_norm() > 0
    with unittest.mock.patch.object(dist, "is_initialized", return_value=False):
        assert not copy.deepcopy(oktopk_torch.state(ddp.module))


def test_a_static_graph_leaves_residuals_of_unused_parameters(_):
    """Also those that come from a saved state, of a program that has used them."""
    large_second = torch.tensor([0.01, 1.0])[:, None].expand(2, 64)
    before, saving = hooked(Optional(2, 64))
    for _step in range(3):
        before(large_second, [0, 1]).backward()
    waiting = carried(saving)[0]["parts.1"]
    assert waiting.count_nonzero() > 20
    ddp, state = hooked(Optional(2, 64), static_graph=True)
    state.load_state_dict(saving.state_dict())
    for _step in range(5):
        ddp(large_second, [0]).backward()
        assert ddp.module.parts[1].grad is None
    assert torch.equal(carried(state)[0]["parts.1"], waiting)


def test_goes_on_to_the_bit(scheme):
    """A new program that loads does what the old one does. DDP of torch 1.13 builds other buckets after its first iteration,
    with a static graph after its second one."""
    plain = [(optimizer, 5, {"cap": cap}) for cap in (25.0, 0.01) for optimizer in ("sgd", "adamw", "corrected")]
    static = [("sgd", before, {"cap": 0.01, "static": True}) for before in (3, 5)]
    for optimizer, before, how in plain + static:
        whole = Training(scheme, optimizer, **how).steps(0, before)
        saved, kept = whole.saved(), copy.deepcopy(whole.ddp.module)
        again = Training(scheme, optimizer, **how)
        again.load(saved)
        assert torch.equal(whole.weights(), weights_of(kept))
        for step in range(before, before + 7):
            assert whole.step(step) == again.step(step)
            assert torch.equal(whole.weights(), again.weights()), (how, before, step)
        assert again.borders[0] != again.borders[-1 if "static" in how else 1] == whole.borders[-1]
        ours, theirs = again.state.state_dict(), whole.state.state_dict()
        assert torch.equal(bytes_of(ours), bytes_of(theirs)) and ours["scheme"] == theirs["scheme"]
        assert [len(each) for each in carried(again.state)] == [6, 6 if optimizer == "corrected" else 0]
        # Without the states of the algorithm it would be another run: what is compared tells.
        without = Training(scheme, optimizer, **how)
        without.ddp.load_state_dict(saved[0])
        without.optimizer.load_state_dict(saved[1])
        without.step(before)
        assert residuals_of(without.state).ne(residuals_of(whole.state)).any()


def test_says_what_is_wrong(_):
    """On every rank, and the next state can be made."""
    model, last = nn.Linear(8, 8), is_last()
    for words, scheme, options in (
            ('there is no algorithm "okk_topk"; there are ok_topk, paper_ok_topk, topk_a', "okk_topk", {}),
            ("has format, local, ", "ok_topk(select=exact)", {}),
            ("is not in (0, 1]", "topk_a(density=2)", {}), ("is no number", "topk_a(density=many)", {}),
            ("no algorithm", "topk_b" if last else "topk_a", {}), ("disagree", "topk_a" if last else "gtopk", {}),
            ("density=", f"topk_a(density={0.1 if last else 0.2})", {}),
            ("momentum", "topk_a", {"momentum": 1.0}), ("nesterov", "topk_a", {"nesterov": True})):
        refused(words, oktopk_torch.state, model, scheme, **options)
    assert "make_allreduce" not in message_of(oktopk_torch.state, model, "okk_topk")
    refused("length", oktopk_torch.state, nn.Linear(8, 9 if last else 8), "topk_a")
    assert issubclass(oktopk_torch.Error, RuntimeError)
    oktopk_torch.state(model, "topk_a")


def test_refuses_a_state_that_does_not_fit(scheme):
    """On every rank, also where only one has it; and goes on as if nothing had been."""
    training = Training(scheme).steps(0, 3)
    before = training.saved()[2]
    refused("the state is of", Training("ok_topk(density=0.05, format=packed)").state.load_state_dict, before)
    refused("another momentum", Training(scheme, "corrected").state.load_state_dict, before)
    saved, damaged = bytes_of(before), bytes_of(before).clone()
    damaged[saved.numel() // 2] ^= 64
    for words, spoilt in (
            ("do not fit: ['nobody']", {"parameters": before["parameters"] + ["nobody"]}),
            ("another order", {"parameters": before["parameters"][::-1]}),
            ("type Float", with_bytes(before, saved.float())), ("cut short", with_bytes(before, saved[:-1])),
            ("checkpoint", with_bytes(before, damaged)),
            ("other", {"state": oktopk_torch.state(nn.Linear(8, 8), scheme).state_dict()["state"]}),
            ("none of oktopk_torch", {"state": b""}), ("none of oktopk_torch", {"state": {}}),
            ("none of oktopk_torch", {"state": {"tank0": (saved,)}}), ("none of oktopk_torch", with_bytes(before, saved, 2 ** 40)),
            ("none of oktopk_torch", with_bytes(before, saved, "inf")), ("none of oktopk_torch", with_bytes(before, saved, -1))):
        refused(words, training.state.load_state_dict, {**before, **spoilt} if is_last() else before)
    for nothing in (None, {}):
        refused("none of oktopk_torch", training.state.load_state_dict, nothing if is_last() else before)
    assert torch.equal(bytes_of(training.saved()[2]), saved)


def test_a_fault_of_one_rank_comes_to_all(scheme):
    """And the next iteration works: with one bucket, with several, and with those of a state that was loaded."""
    loaded, again = Training(scheme, cap=0.01).steps(0, 3), Training(scheme, cap=0.01)
    again.load(loaded.saved())
    last = dist.get_world_size() - 1
    for training in (Training(scheme), Training(scheme, cap=0.01), loaded, again):
        weights = training.weights()
        loss = loss_of(training.ddp, 10)
        if dist.get_rank() == last:
            loss = loss * float("nan")
        training.optimizer.zero_grad()
        try:
            loss.backward()
        except RuntimeError as error:
            assert f"rank {last}: the value at index 0 is not finite" in str(error), error
            names = training.state.state_dict()["parameters"]
            assert any(f"index 0 of {name}" in str(error) for name in names), error
        else:
            raise AssertionError("no error came")
        assert torch.equal(weights, training.weights())
        assert not torch.equal(weights, training.steps(11, 14).weights())
        check_same_everywhere(training.weights())


def test_averages_by_key_are_those_of_the_hook(scheme):
    """To the bit, on the same gradients, with all options: a bucket of one parameter, and a call by key."""
    for kind in (torch.float32, torch.float64):
        how = {"momentum": 0.9, "clip_norm": 15.0, "residual_decay": 0.9,
               "density": oktopk_torch.density_schedule(0.02, 1.0, 4)}
        ddp, _ = hooked(Optional(1, 300).to(kind), scheme, how)
        average = oktopk_torch.averager(None, scheme, dtype=kind, **how)
        for step in range(12):
            inputs = inputs_of(step, dist.get_rank(), 1, 300).to(kind)
            ddp.zero_grad()
            ddp(inputs, [0]).backward()
            ours = average(inputs[0], key="x")
            assert torch.equal(ours, ddp.module.parts[0].grad), step
        assert 0 < ours.count_nonzero() < 50


def test_averages_by_key_lose_nothing(scheme):
    """Also in half precision, of tensors that are not contiguous, at once and as futures; and a program that loads goes on
    to the bit."""
    average, rank = oktopk_torch.averager(None, scheme), dist.get_rank()
    for kind, tolerance in ((torch.float32, 1e-5), (torch.float16, 1e-2), (torch.bfloat16, 1e-1)):
        went_in, came_out = torch.zeros(20, 30), torch.zeros(20, 30)
        for step in range(6):
            gradient = torch.randn(20, 30, generator=torch.Generator().manual_seed(100 * step + rank)).to(kind)
            went_in += gradient.float()
            if step % 3 == 0:
                came_out += average(gradient, key=str(kind)).float()
            elif step % 3 == 1:
                columns = gradient.t().contiguous().t()
                assert average.average(columns, key=str(kind)) is columns
                came_out += columns.float()
            else:
                other = average(torch.ones(7), key="other", async_op=True)
                came_out += average(gradient, key=str(kind), async_op=True).wait().float()
                assert other.wait().shape == (7,)
        check_sums(carried(average)[0][str(kind)], came_out.flatten(), went_in.flatten(), tolerance, tolerance, kind)
    again = oktopk_torch.averager(None, scheme)
    again.load_state_dict(average.state_dict())
    for step in range(5):
        ours, theirs = (each(torch.full((7,), float(step + rank)), key="other") for each in (average, again))
        assert torch.equal(ours, theirs)
    assert torch.equal(*(bytes_of(each.state_dict()) for each in (average, again)))


def test_an_average_of_something_else_is_an_error(_):
    """On every rank, also where one rank alone has it, and the next call works."""
    average, last = oktopk_torch.averager(None, "ok_topk"), is_last()
    average(torch.ones(8), key="a")
    for wrong, words in ((None, "is None"), (torch.ones(8).numpy(), "is of type ndarray, and no tensor"),
                         (torch.ones(8, dtype=torch.float64), "float64"), (torch.ones(8, dtype=torch.int64), "int64"),
                         (torch.ones(9), "has 9 values, and had 8"), (torch.ones(8).to_sparse(), "sparse"),
                         (torch.ones(8, device="meta"), "lies on meta")):
        said = message_of(average, wrong if last else torch.ones(8), key="a")
        assert words in said and "key 'a'" in said, said
        refused("key 'b'", average, wrong if last else torch.ones(8), key="b")
        if words != "has 9 values, and had 8":
            refused(words, average, wrong, key="new")
        average(torch.ones(8), key="a")
    refused("key", average, torch.ones(8), key="b" if last else "c")
    nan = torch.full((8,), float("nan") if last else 1.0)
    refused("not finite: index 0 of a", average, nan, key="a")
    refused("not finite", average(nan, key="a", async_op=True).wait)
    assert torch.equal(average(torch.zeros(8), key="d"), torch.zeros(8))
    refused("no text", oktopk_torch.averager, None, 3)
    refused("neither", oktopk_torch.averager, None, dtype=torch.float16)


def test_what_torch_cannot_write_to_is_an_error(_):
    """Of the future alone. Tensors of the inference mode are written to, of other types and not contiguous as well."""
    average = oktopk_torch.averager(None, "topk_a(density=1)")
    for kind in (torch.float32, torch.float16):
        with torch.inference_mode():
            tensor = torch.full((3, 5), 1.0 + dist.get_rank()).to(kind).t()
        for how in ({}, {"async_op": True}):
            average(tensor, key="a", **how).wait() if how else average(tensor, key="a")
            assert (tensor == (1 + dist.get_world_size()) / 2).all(), tensor
    one = torch.ones(1).expand(15)
    refused("copy of an average", average, one, key="a")
    refused("copy of an average", average(one, key="a", async_op=True).wait)
    assert average(torch.ones(15), key="a").equal(torch.ones(15))


def test_a_callback_that_would_wait_is_an_error(_):
    """Later callbacks wait for it; the call would wait for itself. Starting work is allowed."""
    average, said, futures, is_called = oktopk_torch.averager(), [], [], threading.Event()
    average(torch.ones(8), key="a")

    def ends(_):
        said.extend(message_of(each) for each in (average.residual_norm, lambda: average(torch.ones(8), key="a")))
        futures.append(average(torch.ones(8), key="a", async_op=True))
        is_called.set()
    dist.barrier()
    if dist.get_rank() == 0:
        time.sleep(0.5)  # so that the others have their callbacks before anything is done
        average(torch.ones(8), key="a")
        average(torch.ones(8), key="a")
    else:
        average(torch.ones(8), key="a", async_op=True).add_done_callback(ends)
        assert is_called.wait(60)
        futures[0].wait()
        assert len(said) == 2 and all("a callback of a future cannot wait" in each for each in said), said


def test_a_group_that_does_not_do_is_refused(_):
    """By name, before anything is sent."""
    class OfDevices(dist.ProcessGroup):
        def name(self):
            return "nccl"

    class Other(dist.ProcessGroup):  # as torch from 2 on has it, here in every torch
        def name(self):
            return "nccl2"

        def _get_backend(self, device):
            raise RuntimeError(f"No backend type associated with device type {device}")

    class OfTorchcomms(Other):
        def _get_backend(self, device):
            return type("BackendWrapper", (), {"__module__": "torchcomms._comms"})()
    first = dist.new_group([0])
    if dist.get_rank() != 0:
        refused("no process group", oktopk_torch.averager, first)
    for kind, words in ((OfDevices, "a process group of nccl "), (Other, "a process group of nccl2 moves no tensors of the CPU"),
                        (OfTorchcomms, "torchcomms, whose waits have no time limit")):
        refused(words, oktopk_torch.averager, kind(dist.get_rank(), dist.get_world_size()))


class Scaler:
    """As torch.cuda.amp.GradScaler, which torch without CUDA switches off: skips a step with an infinity, halves its scale
    then, and doubles it when it is told to."""

    def __init__(self, scale):
        self.scale_now, self.skipped = scale, []

    def get_scale(self):
        return self.scale_now

    def scale(self, loss):
        return loss * self.scale_now

    def step(self, optimizer, number):
        gradients = [each.grad for group in optimizer.param_groups for each in group["params"]]
        for each in gradients:
            each /= self.scale_now
        if all(each.isfinite().all() for each in gradients):
            optimizer.step()
        else:
            self.skipped.append(number)
            self.scale_now /= 2


def test_a_scaler_sees_infinities_and_skips_the_step(scheme):
    """An overflow on one rank at step 50 is skipped as without a hook; growth at step 100 rescales nothing in the residuals;
    and nothing is lost: residuals and averages add up to the gradients of the steps that were not skipped."""
    rank, ranks, skipped = dist.get_rank(), dist.get_world_size(), []
    for hooked in (True, False):
        ddp, scaler = DistributedDataParallel(Optional(), bucket_cap_mb=0.0001), Scaler(2.0 ** 10)
        if hooked:
            state = oktopk_torch.state(ddp, scheme, grad_scaler=scaler)
            ddp.register_comm_hook(state, oktopk_torch.hook)
        optimizer = torch.optim.SGD(ddp.parameters(), 0.0)
        went_in, came_out, residuals = torch.zeros(4, 40, dtype=torch.float64), torch.zeros(4, 40, dtype=torch.float64), None
        for step in range(150):
            optimizer.zero_grad()
            inputs = inputs_of(step, rank)
            before = residuals_of(state) if hooked and step == 50 else None
            fault = float("inf") if step == 50 and rank == ranks - 1 else 1.0
            scaler.scale(ddp(inputs * torch.tensor([1, 1, fault, 1])[:, None], range(4))).backward()
            scaler.step(optimizer, step)
            if step not in scaler.skipped:
                went_in += inputs
                came_out += torch.stack([each.grad for each in ddp.parameters()])
            elif hooked:
                assert torch.equal(before, residuals_of(state)) and state.last_step()["was_skipped"] == 1
                assert all(each.grad.isinf().all() for each in ddp.parameters())
            scaler.scale_now *= 4 if step == 100 else 1
        skipped.append(scaler.skipped)
        residuals = residuals_of(state).double().reshape(4, 40)
        if hooked:
            check_sums(residuals, came_out, went_in, 1e-5, 1e-4)
            assert state.last_step()["skipped"] == 1 and state.last_step()["steps"] == 150
    assert skipped[0] == skipped[1] == [50]


def test_an_average_that_overflows_in_half_precision_is_skipped(_):
    """Gradients are finite, and what has waited in the residual is not, times the scale: it waits on."""
    if not ddp_takes(torch.float16):
        return
    scaler, taken = Scaler(1024.0), 0
    ddp, state = hooked(Optional(1, 60).half(), "topk_a(density=0.1)", {"grad_scaler": scaler})
    optimizer, came_out = torch.optim.SGD(ddp.parameters(), 0.0), torch.zeros(60)
    for step in range(12):
        optimizer.zero_grad()
        ddp(torch.full((1, 60), 24.0).half() * (1 + dist.get_rank() / 8), [0]).backward(torch.tensor(scaler.get_scale()).half())
        scaler.step(optimizer, step)
        if step not in scaler.skipped:
            came_out += ddp.module.parts[0].grad.float()
            taken += 1
    assert scaler.skipped and scaler.skipped[0] == 2 and taken == 12 - len(scaler.skipped)
    check_sums(residuals_of(state), came_out, torch.full((60,), 24.0 * (1 + dist.get_rank() / 8) * taken), rtol=1e-2)


def test_a_step_with_a_fault_is_skipped_on_request(scheme):
    """Without a scaler: gradients are None, so no optimizer moves anything, whatever buckets had come before."""
    training = Training(scheme, "adamw", cap=0.01, skip_step_on_fault=True)
    for step in range(6):
        weights, residuals = training.weights(), residuals_of(training.state)
        training.optimizer.zero_grad()
        loss = loss_of(training.ddp, step)
        (loss * float("nan") if step == 3 and dist.get_rank() == 0 else loss).backward()
        training.optimizer.step()
        if step == 3:
            assert training.state.last_step()["was_skipped"] == 1
            assert torch.equal(weights, training.weights()) and torch.equal(residuals, residuals_of(training.state))
        else:
            assert not torch.equal(weights, training.weights()) and training.state.last_step()["was_skipped"] == 0
    assert "1 of them skipped" in training.state.report()


def test_what_cannot_be_averaged_is_refused_by_name(_):
    """When the state is made, on every rank; what only the backward pass shows is an Error there."""
    on_meta = nn.ParameterDict({"bias": nn.Parameter(torch.ones(3, device="meta"))})
    refused("the parameter 0.bias lies on meta", oktopk_torch.state, nn.Sequential(on_meta))
    kind = torch.complex64 if is_last() else torch.float32
    refused("the parameter weight is of type torch.complex64", oktopk_torch.state,
            nn.ParameterDict({"weight": nn.Parameter(torch.ones(3, dtype=kind))}))
    first, second, third = (DistributedDataParallel(nn.Linear(4, 4)) for _ in range(3))
    second.register_comm_hook(oktopk_torch.state(first), oktopk_torch.hook)
    third.register_comm_hook(None, oktopk_torch.hook)
    refused("not of the module", second(torch.ones(1, 4)).sum().backward)
    refused("takes an oktopk_torch.state", third(torch.ones(1, 4)).sum().backward)


def test_a_float64_model_and_a_mixed_one_lose_nothing(scheme):
    """Sums are of float64 where a parameter is; parameters of other types are in buckets of their own."""
    kinds = [torch.float64, torch.float64, torch.float32, torch.float16 if ddp_takes(torch.float16) else torch.float32]
    model = Optional()
    for each, kind in zip(model.parts, kinds):
        each.data = each.data.to(kind)
    ddp, state = hooked(model, scheme)
    assert state.dtype == torch.float64
    went_in, came_out = torch.zeros(4, 40, dtype=torch.float64), torch.zeros(4, 40, dtype=torch.float64)
    for step in range(20):
        ddp.zero_grad()
        inputs = inputs_of(step, dist.get_rank())
        ddp(list(row.to(kind) for row, kind in zip(inputs, kinds)), range(4)).backward()
        went_in += inputs
        came_out += torch.stack([each.grad.double() for each in model.parts])
    for i, tolerance in enumerate((1e-6, 1e-6, 1e-5, 1e-1)):
        residual = carried(state, torch.float64)[0][f"parts.{i}"]
        check_sums(residual, came_out[i], went_in[i], tolerance, tolerance, kinds[i])


def test_densities_follow_a_schedule(_):
    """From dense to sparse, also across a saved state; and a density that is set is that of the next step."""
    schedule = oktopk_torch.density_schedule(0.01, 1.0, 8, 4)
    assert [round(schedule(i), 4) for i in (0, 2, 8, 100)] == [1.0, 0.3162, 0.01, 0.01]
    average = oktopk_torch.averager(None, "topk_a", density=schedule)
    counts = []
    for step in range(10):
        if step == 5:
            saved, average = average.state_dict(), oktopk_torch.averager(None, "topk_a", density=schedule)
            average.load_state_dict(saved)
        average(torch.rand(1000), key="x")
        counts.append(average.last_step()["selected"])
    assert counts == [max(1, round(1000 * schedule(i))) for i in range(10)], counts
    average.set_density(0.5)
    average(torch.rand(1000), key="x")
    assert average.last_step()["density"] == 0.5
    for wrong in (0, 1.5, float("nan")):
        refused("(0, 1]", average.set_density, wrong)
    refused("warm-up", oktopk_torch.density_schedule, 0.1, 1, -1)
    refused("takes no other k", oktopk_torch.averager(None, "dense").set_density, 0.5)


def test_a_density_is_checked_when_an_averager_is_made(_):
    """And one that was set is saved, in place of a schedule. A text with k waits for the length of the first tensor."""
    for wrong in (0, float("nan"), lambda step: 0):
        refused("(0, 1]", oktopk_torch.averager, None, "topk_a", density=wrong)
        refused("(0, 1]", oktopk_torch.state, nn.Linear(8, 8), "topk_a", density=wrong)
    refused("takes no other k", oktopk_torch.averager, None, "dense", density=0.5)
    late = oktopk_torch.averager(None, "topk_a", density=lambda step: 0.5 if step < 1 else 0)
    late(torch.ones(8), key="x")
    refused("(0, 1]", late, torch.ones(8), key="x")
    average = oktopk_torch.averager(None, "topk_a(k=3)")
    average(torch.ones(8), key="x")
    assert average.last_step()["selected"] == 3 and average.state_dict()["density"] is None
    average.set_density(0.5)
    for how in ({}, {"density": lambda step: 1.0}):
        again = oktopk_torch.averager(None, "topk_a(k=3)", **how)
        again.load_state_dict(average.state_dict())
        again(torch.ones(8), key="x")
        assert again.last_step()["selected"] == 4 and float(again.state_dict()["density"]) == 0.5
    for wrong, words in (("much", "none of oktopk_torch"), (2.0, "(0, 1]"), (0.25, "disagree")):
        refused(words, again.load_state_dict, {**average.state_dict(), "density": wrong if is_last() else 0.5})
    again(torch.ones(8), key="x")
    assert again.last_step()["selected"] == 4
    again.load_state_dict(oktopk_torch.averager(None, "topk_a(k=3)").state_dict())
    again(torch.ones(9), key="x")


def test_clipping_does_not_see_what_takes_no_part(_):
    """A gradient that stays on a parameter that no rank uses."""
    ddp, _ = hooked(Optional(2, 64), "topk_a(density=1)", {"clip_norm": 1.0}, find_unused_parameters=True)
    ddp(torch.ones(2, 64), [0, 1]).backward()
    used, stays = ddp.module.parts
    used.grad = None
    stays.grad.fill_(100)
    ddp(torch.full((2, 64), 0.0625), [0]).backward()  # of norm 0.5
    assert used.grad.equal(torch.full((64,), 0.0625)) and stays.grad.equal(torch.full((64,), 100.0)), used.grad


def test_a_state_with_a_tensor_in_no_bucket_is_loaded(scheme):
    """Also with another plan of buckets: the residual of each parameter is there."""
    model = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    state = oktopk_torch.state(model, scheme)
    part = DistributedDataParallel(model[0])
    part.register_comm_hook(state, oktopk_torch.hook)
    part(torch.ones(1, 8)).sum().backward()
    again = oktopk_torch.state(model, scheme)
    again.load_state_dict(state.state_dict())
    assert residuals_of(again).count_nonzero() > 0 and residuals_of(again).equal(residuals_of(state))
    other = DistributedDataParallel(model[0])
    other.register_comm_hook(again, oktopk_torch.hook)
    other(torch.ones(1, 8)).sum().backward()


def test_options_of_the_residual_act(_):
    """Clipping bounds what goes in; decay leaves a share of the residual; its norm is told."""
    for options, first, second in (({}, 1.0, 2.0), ({"residual_decay": 0.5}, 1.0, 1.5), ({"residual_decay": 0.0}, 1.0, 1.0),
                                   ({"clip_norm": 5.0}, 0.5, 1.0)):
        average = oktopk_torch.averager(None, "topk_a(k=0)", **options)
        for expected in (first, second):
            average(torch.ones(100), key="x")
            assert torch.allclose(carried(average)[0]["x"], torch.full((100,), expected)), options
            assert abs(average.residual_norm() - 10 * expected) < 1e-4
    for name, wrong in (("residual_decay", 1.5), ("clip_norm", -1.0)):
        refused(name, oktopk_torch.averager, None, **{name: wrong})


def test_a_report_says_what_runs(_):
    training = Training("ok_topk(density=0.05, format=packed)", cap=0.01).steps(0, 4)
    last, said = training.state.last_step(), training.state.report()
    assert last["steps"] == 4 and last["values"] == 4801 and last["ranks"] == dist.get_world_size()
    assert 0 <= last["hidden_seconds"] <= last["seconds"] and last["words"] < 4801
    assert last["hidden_seconds"] <= last["hideable_seconds"] + 1e-9 and last["step_values"] == 4801
    assert f"{4 * last['words']:.0f} bytes sent" in said and "of a dense ring's" in said and "hidden" in said
    assert said.count("which is ok_topk") == last["buckets"] == len(training.borders[-1]), said
    automatic = oktopk_torch.averager(None, "automatic")
    automatic(torch.ones(1000), key="x")
    assert "ms predicted" in automatic.report(), automatic.report()
    said = Training("dense").steps(0, 3).state.report()
    assert " 1 of a dense ring's" in said and "4801 of 4801" in said


def test_a_state_goes_on_with_other_ranks(scheme):
    """All that three ranks held back is there on the ranks that go on, in units of their averages."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    saved = all_gathered(Training(scheme, cap=0.01).steps(0, 3).state.state_dict())
    for before in (1, ranks + 1):  # as if so many had saved
        states = [{**with_bytes(saved[i % ranks], bytes_of(saved[i % ranks]), i), "ranks": before} for i in range(before)]
        again = Training(scheme, cap=0.01)
        refused("other_ranks=True", again.state.load_state_dict, states[0])
        if before > 1:
            refused(f"the list has {before - 1} states, and {before} ranks have saved", again.state.load_state_dict, states[:-1],
                    other_ranks=True)
        again.state.load_state_dict(states, other_ranks=True)
        held = sum(residuals_of(each) for each in states)
        now = sum(of_all_ranks(residuals_of(again.state)))
        assert torch.allclose(now * before, held * ranks, rtol=1e-5, atol=1e-7)
        again.step(3)
    one = Training(scheme, cap=0.01)
    one.state.load_state_dict({**saved[rank], "ranks": ranks + 1}, other_ranks=True)
    assert torch.allclose(residuals_of(one.state) * (ranks + 1), residuals_of(saved[rank]) * ranks, rtol=1e-5)
    other = with_bytes(saved[0], bytes_of(oktopk_torch.state(nn.Linear(8, 8)).state_dict()), 0)
    refused("other parameters", one.state.load_state_dict, [{**other, "ranks": 1}], other_ranks=True)
    nobodys = {**saved[rank], "ranks": 0 if is_last() else ranks + 1}
    refused("none of oktopk_torch", one.state.load_state_dict, nobodys, other_ranks=True)
    short = [without_schemes(each) if is_last() else each for each in states]
    refused("other parameters", one.state.load_state_dict, short, other_ranks=True)


def test_what_ddp_counts_as_used_is_averaged(_):
    """As DDP alone does: where the forward method is called by its name, where uses lie within `no_sync`, and where a
    parameter is frozen before the state is made."""
    def by_name(ddp, inputs):
        ddp.forward(inputs, [0, 1]).backward()

    def without_sync(ddp, inputs):
        with ddp.no_sync():
            ddp(inputs, [0, 1]).backward()
        ddp(inputs, [0]).backward()

    def frozen(ddp, inputs):
        ddp(inputs, [0, 1]).backward()

    finds = {"find_unused_parameters": True}
    for train, flags in ((by_name, {}), (by_name, finds), (by_name, {"static_graph": True}), (without_sync, finds), (frozen, finds)):
        weights = []
        for is_hooked in (False, True):
            ddp = DistributedDataParallel(Optional(2, 64), **flags)
            ddp.module.parts[1].requires_grad_(train is not frozen)
            if is_hooked:
                ddp.register_comm_hook(oktopk_torch.state(ddp, "topk_a(density=1)"), oktopk_torch.hook)
            optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
            for _step in range(3):
                optimizer.zero_grad()
                train(ddp, torch.full((2, 64), 1.0 + dist.get_rank()))
                optimizer.step()
            weights.append(weights_of(ddp))
        assert torch.allclose(*weights, atol=1e-6), (train, flags, weights)


class Beside(nn.Module):
    """A network, and a part that it does not use."""

    def __init__(self, part):
        super().__init__()
        self.part, self.used = part, Crossed()

    def forward(self, inputs):
        return self.used(inputs)


def test_what_ddp_ignores_is_ignored(scheme):
    """A sparse embedding, a complex parameter, a dense one: and a training that was saved goes on to the bit."""
    for part in (nn.Embedding(10, 4, sparse=True), nn.ParameterList([nn.Parameter(torch.zeros(3, dtype=torch.complex64))]),
                 nn.Linear(30, 30)):
        def made(part):
            torch.manual_seed(5)
            model = Beside(copy.deepcopy(part))
            names = [f"part.{name}" for name, _ in part.named_parameters()]
            DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, names)
            ddp, state = hooked(model, scheme, {"clip_norm": 1e3})
            return ddp, state, torch.optim.SGD(model.used.parameters(), 0.003)

        whole, state, optimizer = made(part)
        for step in range(4):
            move(optimizer, lambda: loss_of(whole, step))
        again, state_again, optimizer_again = made(part)
        again.load_state_dict(whole.state_dict())
        state_again.load_state_dict(state.state_dict())
        for step in range(4, 8):
            move(optimizer, lambda: loss_of(whole, step))
            move(optimizer_again, lambda: loss_of(again, step))
        assert torch.equal(weights_of(whole.module.used), weights_of(again.module.used)), part
        assert not any(name.startswith("part.") for name in state.state_dict()["parameters"])


def test_ddp_goes_on_behind_an_error(_):
    """Where the pass that failed has left parameters unused, DDP counts the uses of the next pass anew."""
    ddp, _ = hooked(Optional(), "topk_a(density=1)", find_unused_parameters=True, made=in_small_buckets)
    ddp(torch.ones(4, 40), range(4)).backward()
    refused("not finite", ddp(torch.full((4, 40), float("nan") if is_last() else 1.0), [0]).backward)
    ddp.zero_grad(set_to_none=True)
    ddp(torch.ones(4, 40), [0, 1] if is_last() else [0]).backward()
    assert ddp.module.parts[1].grad is not None and ddp.module.parts[2].grad is None
    assert torch.allclose(ddp.module.parts[1].grad, torch.full((40,), 1 / dist.get_world_size()))


def test_sums_of_the_group_are_not_those_of_the_program(_):
    """The thread of the averages calls the allreduce of Gloo while the program calls one, or DDP for its map of uses; in a
    part of the ranks as well."""
    rank, part, _ = dist.get_rank(), dist.new_group([0, 1]), dist.new_group([0])  # ranks are in different numbers of groups
    for group in (None, part) if rank < 2 else (None,):
        ranks = dist.get_world_size(group)
        for scheme in ("dense", "automatic(density=0.5)"):
            average = oktopk_torch.averager(group, scheme)
            came_out = torch.zeros(1000)
            for step in range(5):
                gradient, loss = torch.full((1000,), 1.0 + rank), torch.full((1000,), 100.0 + rank)
                future = average(gradient, key="a", async_op=True)
                time.sleep(0.3 * rank if step == 3 and rank < 2 else 0)
                dist.all_reduce(loss, group=group)
                future.wait()
                came_out += gradient
                assert (loss == 100 * ranks + ranks * (ranks - 1) / 2).all(), (scheme, step, loss)
            everywhere = carried(average)[0]["a"] + 0
            dist.all_reduce(everywhere, group=group)
            assert torch.allclose(everywhere + ranks * came_out, torch.full((1000,), 5.0 * ranks * (ranks + 1) / 2)), scheme
    dist.barrier()
    gradients = []
    for scheme in (None, "dense"):
        torch.manual_seed(1)
        net = nn.Sequential(*[nn.Linear(32, 32) for _ in range(6)])
        ddp = DistributedDataParallel(net, bucket_cap_mb=0.002, find_unused_parameters=True)
        if scheme:
            ddp.register_comm_hook(oktopk_torch.state(ddp, scheme), oktopk_torch.hook)
        net[4].weight.register_hook(lambda _: time.sleep(0.2 * rank))
        for step in range(3):
            ddp.zero_grad()
            ddp(torch.full((4, 32), 1.0 + rank + step)).sum().backward()
        gradients.append(torch.cat([each.grad.flatten() for each in net.parameters()]))
    assert torch.allclose(*gradients, rtol=1e-4, atol=1e-5)


def test_calls_in_another_order_are_an_error_that_names_them(_):
    """On every rank, of keys of one length, of averagers, and of states; and nothing is lost."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for scheme in ("ok_topk(density=1)", "topk_a(density=1)", "dense"):
        average, other = (oktopk_torch.averager(None, scheme) for _ in range(2))
        for each, key in itertools.product((average, other), "pq"):
            each(torch.full((64,), 1.0 + rank), key=key)
        said = message_of(average, torch.ones(64), key="q" if is_last() else "p")
        assert "key 'p'" in said and "key 'q'" in said, said
        said = message_of(other if is_last() else average, torch.ones(64), key="p")
        assert said.count("key 'p' of averager") == 2, said
        assert (average(torch.full((64,), 1.0 + rank), key="p") == (ranks + 1) / 2).all()
        first, second = (hooked(Optional(1, 64), scheme)[0] for _ in range(2))
        for each in (first, second):
            each(torch.full((1, 64), 1.0 + rank), [0]).backward()
        said = message_of((second if is_last() else first)(torch.ones(1, 64), [0]).backward)
        assert said.count("backward pass of state") == 2, said


def test_a_state_of_another_rank_is_refused(_):
    """On every rank, and nothing has changed."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    average, again = (oktopk_torch.averager(None, "topk_a(k=1)") for _ in range(2))
    average(torch.arange(10.0) * (rank + 1), key="x")
    box = [average.state_dict() if rank == 0 else None]
    dist.broadcast_object_list(box)
    refused("is of rank 0, and this is rank 1", again.load_state_dict, box[0])
    refused("at place 1 is of rank 0", again.load_state_dict, [{**box[0], "ranks": ranks + 1}] * (ranks + 1), other_ranks=True)
    refused("would count twice", again.load_state_dict, {**box[0], "ranks": 1}, other_ranks=True)
    refused("other_ranks=True", again.load_state_dict, box * 2)
    assert again.residual_norm() == 0
    again.load_state_dict(average.state_dict())
    assert again.residual_norm() == average.residual_norm() > 0


def test_states_that_were_saved_earlier_are_loaded(_):
    """With the bytes alone, as there were no names of ranks; also on another number of ranks, and before they had numbers."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    average, again = (oktopk_torch.averager(None, "topk_a(k=1)") for _ in range(2))
    average.set_density(0.3)
    average(torch.arange(10.0) * (rank + 1), key="x")
    saved = average.state_dict()
    earlier = {**saved, "state": bytes_of(saved), "rank": rank, "steps": dict(saved["steps"]),
               "density": torch.tensor(float(saved["density"]), dtype=torch.float64)}
    unnumbered = {name: each for name, each in earlier.items() if name != "rank"}
    for each, how in ((earlier, {}), (unnumbered, {}), ([{**earlier, "rank": i, "ranks": ranks + 1} for i in range(ranks + 1)],
                                                        {"other_ranks": True})):
        again.load_state_dict(each, **how)
        assert again.residual_norm() > 0 and again.density == 0.3
        if not how:
            assert again.residual_norm() == average.residual_norm()
    refused("is of rank 0, and this is rank 1", again.load_state_dict, all_gathered(earlier)[0])


def shared_folder():
    """A new one, which all ranks know."""
    return pathlib.Path(all_gathered(tempfile.mkdtemp() if is_last() else None)[-1])


def test_a_distributed_checkpoint_gives_each_rank_its_own(scheme):
    """Of the state, and of what `state_dict` gives under a key for each rank; also where a density was set, and by an averager
    that has had no call. The states of all ranks together have one key."""
    if torch.__version__ < (2, 2):  # that of older releases is not for Python 3.11
        return
    from torch.distributed import checkpoint
    folder, rank = shared_folder(), dist.get_rank()
    training, average = Training(scheme).steps(0, 3), oktopk_torch.averager(None, scheme)
    training.state.set_density(0.2)
    average(torch.arange(100.0) * (rank + 1), key="x")
    kept = [training.state, average]

    def given(state, average):
        return {"state": state, f"state.{rank}": state.state_dict(), "average": average, "all": oktopk_torch.gathered(average)}
    checkpoint.save(given(*kept), checkpoint_id=folder)
    again = [Training(scheme).state, oktopk_torch.averager(None, scheme)]
    read = given(*again)
    checkpoint.load(read, checkpoint_id=folder)
    for one, other in zip(kept, again):
        assert torch.equal(bytes_of(one.state_dict()), bytes_of(other.state_dict())) and one.residual_norm() > 0
    assert again[0].density == 0.2
    again[0].load_state_dict(read[f"state.{rank}"])
    dist.barrier()
    if is_last():
        shutil.rmtree(folder)


def test_states_of_all_ranks_are_one(_):
    """`gathered` gives each rank its own, also through a file; on another number of ranks the shares; what is none, to one rank
    or to all, and what a rank cannot save, is an error on all."""
    rank, ranks, group = dist.get_rank(), dist.get_world_size(), dist.new_group([0])
    average, again = (oktopk_torch.averager(None, "topk_a(k=1)") for _ in range(2))
    average(torch.arange(10.0) * (rank + 1), key="x")
    with unittest.mock.patch.object(oktopk_torch._saving, "_PIECE", 100):  # bytes of a message
        saved = through_a_file(oktopk_torch.gathered(average).state_dict())
    assert all(each == len(saved["every"]) == ranks for each in all_gathered(len(saved["every"])))
    oktopk_torch.gathered(again).load_state_dict(saved)
    assert torch.equal(*(carried(each)[0]["x"] for each in (average, again)))
    held = sum(of_all_ranks(carried(average)[0]["x"]))
    if rank == 0:
        alone = oktopk_torch.averager(group, "topk_a(k=1)")
        oktopk_torch.gathered(alone).load_state_dict(saved)
        assert torch.allclose(carried(alone)[0]["x"] * ranks, held)
    for nothing in (None, {}, {"every": 1}, {"every": ()}):
        refused("none of oktopk_torch", oktopk_torch.gathered(again).load_state_dict, nothing if is_last() else saved)
    refused("takes a state or an averager", oktopk_torch.gathered, torch.nn.Linear(1, 1))
    with unittest.mock.patch.object(average, "state_dict", side_effect=OSError("no room") if is_last() else None, return_value={}):
        refused(f"rank {ranks - 1}: OSError('no room')", oktopk_torch.gathered(average).state_dict)


def test_a_folder_has_the_states_of_all_ranks(scheme):
    """They go on to the bit, and on other ranks lose nothing. A save that ends early, on one rank or before the index, leaves the
    one before; what is missing or damaged is named on every rank, and changes nothing."""
    rank, ranks, folder = dist.get_rank(), dist.get_world_size(), shared_folder()
    refused("has no oktopk.json, so no state was saved there", Training(scheme).state.load, folder)
    training, again = Training(scheme, cap=0.01).steps(0, 3), Training(scheme, cap=0.01)
    training.state.save(folder / "new")
    before = training.state.state_dict()
    again.load(training.saved()[:2] + [again.state.state_dict()])
    again.state.load(folder / "new", partial=True)
    again.state.load(str(folder / "new"))
    for step in range(3, 6):
        assert training.step(step) == again.step(step)
    assert torch.equal(training.weights(), again.weights())

    def is_before():
        again.state.load(folder / "new")
        return torch.equal(bytes_of(again.state.state_dict()), bytes_of(before))
    for broken, on, words in ((unittest.mock.patch.object(torch, "save", side_effect=OSError("no room")), ranks - 1, "no room"),
                              (unittest.mock.patch("os.replace", side_effect=OSError("no right")), ranks - 1, "no right"),
                              (unittest.mock.patch("pathlib.Path.write_text", side_effect=OSError("no index")), 0, "no index")):
        with broken if rank == on else contextlib.nullcontext():
            refused(f"rank {on}: OSError('{words}')", training.state.save, folder / "new")
        assert is_before()
    for _ in range(2):
        training.state.save(folder / "new")
    assert not is_before()
    dist.barrier()  # until all have removed theirs
    assert sorted(each.name.split(".")[1] for each in (folder / "new").iterdir()) == ["json"] + [f"rank{i}" for i in range(ranks)]

    # On rank 0 alone, as one rank; and back.
    groups = [dist.new_group([each]) for each in range(ranks)]
    alone = oktopk_torch.state(Training(scheme).ddp.module, scheme, groups[rank])
    alone.load(folder / "new")
    assert torch.allclose(residuals_of(alone) * ranks, sum(of_all_ranks(residuals_of(training.state))), rtol=1e-5, atol=1e-7)
    pair = dist.new_group([0, 1])
    if ranks > 2 and rank < 2:
        two = oktopk_torch.state(training.ddp.module, scheme, pair)
        with unittest.mock.patch.object(torch, "load", side_effect=OSError("unreadable")) if rank == 1 else contextlib.nullcontext():
            refused("rank 1: ", two.load, folder / "new")
        two.load(folder / "new")
    if rank == 0:
        alone.save(folder / "one")
        alone.save(folder / "new")  # of fewer ranks, over one of more
        assert len(list((folder / "new").iterdir())) == 2
    dist.barrier()
    again.state.load(folder / "one")
    assert torch.allclose(sum(of_all_ranks(residuals_of(again.state))), residuals_of(alone) * ranks, rtol=1e-5, atol=1e-7)
    again.state.save(folder / "new")
    found = {each.name.split(".")[1]: each for each in (folder / "new").iterdir()}
    kept = again.state.state_dict()
    dist.barrier()
    last = found[f"rank{ranks - 1}"]
    for spoil, words in ((lambda: last.write_bytes(last.read_bytes()[:100]), f"rank {ranks - 1}: "),
                         (last.unlink, f"{last} is missing, the state of rank {ranks - 1} of the {ranks} that have saved"),
                         (lambda: found["json"].write_text("[]"), "oktopk.json is damaged"),
                         (found["json"].unlink, "has no oktopk.json")):
        if is_last():
            spoil()
        dist.barrier()
        refused(words, again.state.load, folder / "new")
    assert torch.equal(bytes_of(again.state.state_dict()), bytes_of(kept))
    dist.barrier()
    if is_last():
        shutil.rmtree(folder)


def test_a_state_of_another_memory_format_is_refused(scheme):
    """Its residuals lie in the order of memory, as DDP's buckets do. One of the same format goes on, where lengths of 1 tell
    nothing."""
    def made(kind, kernel=3):
        torch.manual_seed(1)
        ddp, state = hooked(nn.Conv2d(3, 5, kernel).to(memory_format=kind), scheme)
        ddp(torch.ones(2, 3, 8, 8)).square().sum().backward()
        return state

    usual, other = torch.contiguous_format, torch.channels_last
    for one, two in ((usual, other), (other, usual)):
        saved, again = made(one).state_dict(), made(two)
        refused("the values of ['weight'] lie in another order in memory", again.load_state_dict, saved)
        refused("['weight'] lie in another order", again.load_state_dict, saved if is_last() else again.state_dict(), partial=True)
        made(one).load_state_dict(through_a_file(saved))
        again.load_state_dict({name: each for name, each in saved.items() if name != "orders"})  # from before they were saved
    made(other, 1).load_state_dict(made(usual, 1).state_dict())


def test_what_a_callback_raises_comes_to_all(_):
    """A schedule, a scaler: by name, on every rank; the step changes nothing, and the next one works."""
    rank, last = dist.get_rank(), dist.get_world_size() - 1

    class Raising:
        """A scaler that raises in a step on the last rank."""
        step = 0

        def get_scale(self):
            if rank == last and self.step == 1:
                raise IndexError("no number")
            return 1.0

    def schedule(step):
        if step == 1 and rank == last:
            raise IndexError("no number")
        return 0.5

    for how in ({"density": schedule}, {"grad_scaler": Raising()}):
        ddp, state = hooked(Optional(), "topk_a(density=0.5)", how, made=in_small_buckets, find_unused_parameters=True)
        went_in, came_out = torch.zeros(4, 40), torch.zeros(4, 40)
        for step in range(4):
            ddp.zero_grad()
            backward, Raising.step = ddp(inputs_of(step, rank), range(4)).backward, step
            if step == 1:
                said = message_of(backward)
                assert f"rank {last}: the " in said and "IndexError('no number')" in said, said
                continue
            backward()
            went_in += inputs_of(step, rank)
            came_out += torch.stack([each.grad for each in ddp.parameters()])
        check_sums(residuals_of(state).reshape(4, 40), came_out, went_in)
    class Hooking(oktopk_torch.state):
        """A state whose hook raises on the last rank."""

        def start(self, bucket):
            if rank == last and Raising.step == 1 and bucket.index() == 1:
                raise IndexError("no number")
            return super().start(bucket)

    for find_unused in (False, True):
        ddp = in_small_buckets(Optional(), find_unused_parameters=find_unused)
        ddp.register_comm_hook(Hooking(ddp, "topk_a(density=1)"), oktopk_torch.hook)
        for step in range(3):
            ddp.zero_grad()
            backward, Raising.step = ddp(inputs_of(step, rank), range(4)).backward, step
            if step == 1:
                refused(f"rank {last}: the hook raised IndexError('no number')", backward)
            else:
                backward()
        check_same_everywhere(ddp.module.parts[0].grad)
    average = oktopk_torch.averager(None, "topk_a", density=schedule)
    for step in range(3):
        if step == 1:
            refused("IndexError('no number')", average, torch.ones(8), key="x")
        else:
            average(torch.ones(8), key="x")


def test_gradients_below_the_norm_are_not_scaled(_):
    """In any buckets, before and after DDP builds others. Above it each bucket is scaled by the norm of those up to it."""
    for made in (DistributedDataParallel, in_small_buckets):
        ddp, state = hooked(Optional(4, 64), "topk_a(density=1)", {"clip_norm": 1.0}, made=made)
        for step in range(8):
            inputs = torch.zeros(4, 64)
            inputs[step % 4] = 0.9 / 8
            ddp.zero_grad()
            ddp(inputs, range(4)).backward()
            assert torch.allclose(ddp.module.parts[step % 4].grad, inputs[step % 4]), (made, step)
        ddp.zero_grad()
        ddp(torch.full((4, 64), 3.0 / 8), range(4)).backward()
        norms = sorted((each.grad.norm().item() for each in ddp.parameters()), reverse=True)
        is_one = made is DistributedDataParallel
        expected = [0.5] * 4 if is_one else [(i + 1) ** -0.5 for i in range(4)]
        assert state.last_step()["buckets"] == (1 if is_one else 4)
        assert all(abs(one - other) < 1e-5 for one, other in zip(norms, expected)), norms


def test_a_state_from_before_there_was_a_group_is_made_by_its_first_use(scheme):
    """And does what another one does. Without a group its use is an error."""
    weights = []
    for later in (False, True):
        torch.manual_seed(5)
        model = Crossed()
        with unittest.mock.patch.object(dist, "is_initialized", return_value=not later):
            state = oktopk_torch.state(model, scheme)
        assert ("_native" in vars(state)) is not later
        ddp = DistributedDataParallel(model)
        ddp.register_comm_hook(state, oktopk_torch.hook)
        optimizer = torch.optim.SGD(ddp.parameters(), 0.003)
        for step in range(4):
            move(optimizer, lambda: loss_of(ddp, step))
        weights.append(weights_of(ddp))
    assert torch.equal(*weights)
    with unittest.mock.patch.object(dist, "is_initialized", return_value=False), \
            unittest.mock.patch.object(dist, "group", unittest.mock.Mock(WORLD=None)):
        early = oktopk_torch.state(Crossed(), scheme)
        refused("init_process_group first", early.residual_norm)
    assert early.residual_norm() == 0


def warnings_of(call):
    """What oktopk_torch warns of meanwhile."""
    with warnings.catch_warnings(record=True) as every:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in every if "oktopk_torch" in str(each.message)]


def test_a_state_that_averages_nothing_says_so(_):
    """Once, after some steps, and why. One that averages says nothing, nor does one whose gradients add up first."""
    def trains(called, ddp, steps=8, sync=True):
        optimizer = torch.optim.SGD(ddp.parameters(), 0.001)
        with contextlib.nullcontext() if sync else ddp.no_sync():
            for step in range(steps):
                move(optimizer, lambda: loss_of(called, step))
    new = torch.__version__ >= "2"

    def made(registers=None):
        ddp = DistributedDataParallel(Crossed())
        state = oktopk_torch.state(ddp)
        if registers is not None:
            ddp.register_comm_hook(state if registers else None, oktopk_torch.hook if registers else allreduce_hook)
        return state, ddp
    for words, registers, way in (
            ("it is not registered at the DDP module; oktopk_torch.attach" if new else "the hook was never registered", None, {}),
            ("another hook or another state (allreduce_hook)" if new else "the hook was never registered", False, {}),
            ("within no_sync", True, {"sync": False}), ("one of the module inside", True, {"inside": True})):
        state, ddp = made(registers)
        called = ddp.module if way.pop("inside", False) else ddp
        said = warnings_of(lambda: trains(called, ddp, **way))
        assert len(said) == 1 and words in said[0] and "has made 5 steps" in said[0], (words, said)
    lone = Crossed()
    state = oktopk_torch.state(lone)
    said = warnings_of(lambda: trains(lone, lone))
    assert len(said) == 1 and "no DDP module has its parameters" in said[0], said
    state, ddp = made(True)

    def adds_up():
        optimizer = torch.optim.SGD(ddp.parameters(), 0.001)
        for step in range(3):
            with ddp.no_sync():
                for _ in range(7):
                    loss_of(ddp, step).backward()
            loss_of(ddp, step).backward()
            optimizer.step()
    assert not warnings_of(adds_up) and state.last_step()["steps"] == 3


def test_a_state_that_was_forgotten_says_so(_):
    """Where an optimizer has steps behind it or was loaded, and the state was not."""
    makers = {"adamw": lambda p: torch.optim.AdamW(p, 0.001), "momentum": lambda p: torch.optim.SGD(p, 0.001, momentum=0.9),
              "sgd": lambda p: torch.optim.SGD(p, 0.001), "adagrad": lambda p: torch.optim.Adagrad(p, 0.001)}
    for name, make in makers.items():
        for loads_state in (False, True):
            kept = None
            for first in (True, False):
                ddp = DistributedDataParallel(Crossed())
                optimizer = make(ddp.parameters())
                if not first and name != "sgd":  # whose state alone tells nothing
                    optimizer.load_state_dict(kept[0])
                state = oktopk_torch.attach(ddp)
                if not first:
                    optimizer.load_state_dict(kept[0])
                    if loads_state:
                        state.load_state_dict(kept[1])
                said = warnings_of(lambda: [move(optimizer, lambda: loss_of(ddp, step)) for step in range(3)])
                assert len(said) == (not first and not loads_state), (name, first, said)
                assert not said or "the state begins with residuals of 0" in said[0]
                kept = optimizer.state_dict(), state.state_dict()


def test_attach_finds_the_ddp_module(scheme):
    """Inside of what wraps it, and what torch's composable `replicate` makes, before its first pass and after it: with the bits of
    a state that is registered by hand. Where there is none, or not one, a sentence says what to do."""
    def wrapped(ddp):
        return nn.Sequential(nn.Identity(), ddp)

    def replicated(module):
        from torch.distributed._composable.replicate import replicate
        return replicate(module, **({"process_group": dist.new_group()} if torch.__version__ >= "2.2" else {}))
    ways = {"by hand": None, "ddp": DistributedDataParallel, "wrapped": lambda module: wrapped(DistributedDataParallel(module))}
    if torch.__version__ >= "2.4":
        ways["compiled"] = lambda module: torch.compile(DistributedDataParallel(module), backend="eager")
        ways["replicated"] = ways["replicated before"] = replicated
    found = {}
    for name, way in ways.items():
        torch.manual_seed(5)
        module = Crossed()
        if way is None:
            model, state = hooked(module, scheme)
        else:
            model = way(module)
            if name == "replicated before":
                loss_of(model, 0)
            state = oktopk_torch.attach(model, scheme)
        optimizer = torch.optim.SGD(module.parameters(), 0.003)
        for step in range(4):
            move(optimizer, lambda: loss_of(model, step))
        assert state.last_step()["steps"] == 4, name
        found[name] = weights_of(module)
        assert torch.equal(found[name], found["by hand"]), name
    bare, ddp = Crossed(), DistributedDataParallel(Crossed())
    refused("Crossed has no DDP module in it: attach to what wraps it", oktopk_torch.attach, bare)
    refused("has no DDP module in it, but there is one around it: attach to what wraps it", oktopk_torch.attach, ddp.module)
    refused("and not of str", oktopk_torch.attach, "model")
    refused("has 2 DDP modules in it", oktopk_torch.attach, nn.ModuleList([ddp, DistributedDataParallel(Crossed())]))
    refused("parameters that the first of them does not reduce", oktopk_torch.attach, nn.ModuleList([ddp, bare]))
    refused("there is no algorithm", oktopk_torch.attach, ddp, "topk_z")
    oktopk_torch.attach(ddp, scheme)
    refused("a DDP module takes one, once", oktopk_torch.attach, ddp, scheme)


def test_a_state_is_taken_in_part_on_request(scheme):
    """After a part is trained that was frozen, and with the names that torch.compile gives."""
    class Compiled(nn.Module):
        """Names its parameters as what torch.compile makes."""

        def __init__(self, inner):
            super().__init__()
            self._orig_mod = inner

        def forward(self, inputs):
            return self._orig_mod(inputs)

    model = Crossed()
    model.first.requires_grad_(False)
    ddp, state = hooked(Compiled(model), scheme, {"momentum": 0.9})
    for step in range(3):
        ddp.zero_grad()
        loss_of(ddp, step).backward()
    whole, taken = hooked(Crossed(), scheme, {"momentum": 0.9})
    refused("do not fit: ['first.bias', 'first.weight'] (partial=True", taken.load_state_dict, state.state_dict())
    taken.load_state_dict(state.state_dict(), partial=True)
    for now, before in zip(carried(taken), carried(state)):
        assert list(now) == [name for name, _ in Crossed().named_parameters()] and before["last.weight"].count_nonzero() > 0
        for name, each in now.items():
            assert torch.equal(each, before.get(name, torch.zeros_like(each))), name
    loss_of(whole, 3).backward()
    other = oktopk_torch.state(nn.ModuleDict({"last": nn.Linear(3, 1)}), scheme, momentum=0.9)
    refused("last.weight has 3 values, and had 64", other.load_state_dict, state.state_dict(), partial=True)


def test_pairs_of_options_hold_for_200_steps(_):
    """Every pair of them is on, off, and one of both: ranks have the same weights, which are those of DDP alone where all is
    sent, and nothing is lost where it is not."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    columns = list(itertools.combinations(range(5), 3))[:6]
    for row in range(6):  # a covering array: the last row has no option
        finds, static, no_sync, view, freezes, clips = (row in column for column in columns)
        weights = []
        for scheme in (None, "topk_a(density=1)", "ok_topk(density=0.1)"):
            model = Optional()
            model.parts[2].requires_grad_(not freezes)
            ddp = in_small_buckets(model, find_unused_parameters=finds, static_graph=static, gradient_as_bucket_view=view)
            if scheme:
                state = oktopk_torch.state(ddp, scheme, clip_norm=30.0 if clips else 0.0)
                ddp.register_comm_hook(state, oktopk_torch.hook)
            went_in, came_out = torch.zeros(4, 40, dtype=torch.float64), torch.zeros(4, 40, dtype=torch.float64)
            for step in range(200):
                uses = [[0, 1, 3] if static else use_of(step, r) if finds else list(range(4)) for r in range(ranks)]
                times = 2 if no_sync and step > 1 and step % 2 == 0 else 1
                inputs = inputs_of(step, rank)
                ddp.zero_grad(set_to_none=True)
                if times == 2:
                    with ddp.no_sync():
                        ddp(inputs, uses[rank]).backward()
                ddp(inputs, uses[rank]).backward()
                for i in uses[rank]:
                    went_in[i] += times * inputs[i] if model.parts[i].requires_grad else 0
                for i, each in enumerate(model.parts):
                    if each.grad is not None:
                        came_out[i] += each.grad
                        each.data -= 0.01 * each.grad
            check_same_everywhere(weights_of(ddp), row, scheme)
            weights.append(weights_of(ddp))
            if scheme:
                residuals = torch.zeros_like(went_in)
                for name, each in carried(state)[0].items():
                    residuals[int(name.split(".")[1])] = each
                check_sums(residuals, came_out, went_in, atol=1e-3, said=(row, scheme))
        assert torch.allclose(weights[0], weights[1], rtol=1e-4, atol=1e-4), row


def test_what_ddp_offers_trains(scheme):
    """Autocast, ZeRO, `no_sync`, `join` with uneven inputs, buckets as gradients, and two modules over two groups: losses
    go down, and weights are the same on all ranks."""
    def made(**options):
        torch.manual_seed(5)
        ddp, _ = hooked(Crossed(), scheme, **options)
        return ddp, torch.optim.AdamW(ddp.parameters(), 0.003)

    def plain(ddp, optimizer, step):
        return move(optimizer, lambda: loss_of(ddp, step))

    def autocast(ddp, optimizer, step):
        def loss():
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return loss_of(ddp, step)
        return move(optimizer, loss)

    def no_sync(ddp, optimizer, step):
        def loss():
            with ddp.no_sync():
                loss_of(ddp, 2 * step).backward()
            return loss_of(ddp, 2 * step + 1)
        return move(optimizer, loss)

    def check(step_of, ddp, optimizer):
        losses = [step_of(ddp, optimizer, step) for step in range(120)]
        assert sum(losses[-10:]) < 0.6 * sum(losses[:10]), (step_of.__name__, losses)
        check_same_everywhere(weights_of(ddp), step_of.__name__)

    check(autocast, *made(gradient_as_bucket_view=True))
    ddp, _ = made()
    check(plain, ddp, ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.AdamW, lr=0.003))
    check(no_sync, *made())
    ddp, optimizer = made()
    with ddp.join():
        for step in range(20 + 5 * dist.get_rank()):
            plain(ddp, optimizer, step)
    check_same_everywhere(weights_of(ddp))
    other, of_other = made(process_group=dist.new_group(range(dist.get_world_size())))

    def two_modules(ddp, optimizer, step):
        return plain(ddp, optimizer, step) + plain(other, of_other, step)
    check(two_modules, *made())
    check_same_everywhere(weights_of(other))


def test_local_steps_with_an_outer_average_stay_together(scheme):
    """No DDP: H steps of each rank alone, then the mean of the ways, sparse, from common weights."""
    torch.manual_seed(1)
    model, average, losses = Crossed(), oktopk_torch.averager(None, scheme, residual_decay=0.95), []
    common = [each.detach().clone() for each in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    for step in range(240):
        losses.append(move(optimizer, lambda: loss_of(model, step)))
        if step % 8 == 7:
            for i, (kept, each) in enumerate(zip(common, model.parameters())):
                way = kept - each.detach()
                kept -= average(way, key=str(i))
                each.data.copy_(kept)
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10]), losses
    check_same_everywhere(common[1].flatten())


def test_fsdp_averages_between_replicas(scheme):
    """`fully_shard` inside each of two replicas, and its hook for the sums between them: the code of docs/torch.md."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    if ranks % 2 or torch.__version__ < (2, 7):  # that of 1.13 cannot even be imported with Python 3.11
        return
    fsdp = importlib.import_module("torch.distributed.fsdp")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2, ranks // 2), mesh_dim_names=("replicas", "shards"))
    for each in ("topk_a(density=1)", scheme):
        average, calls, losses = oktopk_torch.averager(mesh["replicas"].get_group(), each), [], []
        torch.manual_seed(1)
        model = Crossed()
        alone, attached, both = (copy.deepcopy(model) for _ in range(3))
        for part in (model.middle, model):
            fsdp.fully_shard(part, mesh=mesh["shards"])
        refused("the module is sharded (FSDP)", oktopk_torch.attach, model)
        refused("has no module in it that fully_shard was applied to", oktopk_torch.attach, alone, replicas=mesh["replicas"].get_group())
        for name, module in model.named_modules():
            if isinstance(module, fsdp.FSDPModule):
                def reduce(gradient, key=name, average=average, calls=calls):
                    calls.append(key)
                    host = gradient.cpu()
                    gradient.copy_(average(host, key=key))
                module.set_all_reduce_hook(reduce)
        optimizer = torch.optim.SGD(model.parameters(), 0.02)
        for step in range(100):
            losses.append(move(optimizer, lambda model=model, step=step: loss_of(model, step)))
            if step == 0 and each != scheme:
                loss_of(alone, step).backward()
                for one, other in zip(model.parameters(), alone.parameters()):
                    mean = sum(of_all_ranks(other.grad)) / ranks
                    assert torch.allclose(one.grad.full_tensor(), mean, rtol=1e-4, atol=1e-6), (rank, one, mean)
        assert len(calls) == 200 and set(calls) == {"", "middle"}, calls
        assert sum(losses[-10:]) < 0.5 * sum(losses[:10]), losses
        found = [part.full_tensor().detach().flatten() for part in model.parameters()]
        check_same_everywhere(torch.cat(found))
        for part in (attached.middle, attached):
            fsdp.fully_shard(part, mesh=mesh["shards"])
        average = oktopk_torch.attach(attached, each, replicas=mesh["replicas"].get_group())
        optimizer = torch.optim.SGD(attached.parameters(), 0.02)
        for step in range(100):
            move(optimizer, lambda model=attached, step=step: loss_of(model, step))
        assert all(map(torch.equal, found, [part.full_tensor().detach().flatten() for part in attached.parameters()]))
        assert sorted(average.state_dict()["parameters"]) == ["", "middle"]
    fsdp.fully_shard(both, mesh=mesh)
    refused("has a mesh of two dimensions for the model", oktopk_torch.attach, both, replicas=mesh["replicas"].get_group())


def test_a_compiled_module_has_the_same_bits(scheme):
    """`torch.compile` inside of DDP and around it; the names of the parameters are those of the module."""
    if torch.__version__ < (2, 6):
        return  # not on this Python
    found = []
    for inside, outside in ((False, False), (True, False), (False, True)):
        torch.manual_seed(1)
        module = Crossed()
        ddp, state = hooked(torch.compile(module, backend="eager") if inside else module, scheme)
        call = torch.compile(ddp, backend="eager") if outside else ddp
        optimizer = torch.optim.SGD(ddp.parameters(), 0.01)
        for step in range(10):
            move(optimizer, lambda call=call, step=step: loss_of(call, step))
        found.append((weights_of(ddp), residuals_of(state), state.state_dict()["parameters"]))
    plain, *others = found
    for each in others:
        assert torch.equal(each[0], plain[0]) and torch.equal(each[1], plain[1]) and each[2] == plain[2], each[2]


def run_module(rank, ranks, folder, module, names):
    """The cases of another file, each once, on as many processes as there are."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    for name, function in list(vars(importlib.import_module(module)).items()):
        if name.startswith("test_") and (not names or name in names):
            if rank == 0:
                print(name, flush=True)
            function()
            dist.barrier()


def spawn(module):
    """What a file of such cases does with its arguments: RANKS [CASE...]."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = int(sys.argv[1])
        torch.multiprocessing.spawn(run_module, (ranks, folder, module, sys.argv[2:]), ranks)


def run(rank, ranks, folder, names):
    """Each training on two processes, for it takes long; on three, the pairs of options only by their name, for the same
    reason; on four, what depends on their number most."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    cases = [(function, scheme) for name, function in globals().items() if name.startswith("test_")
             for scheme in (REUSED, *MORE.get(name, []))]
    on_four = [(test_goes_on_to_the_bit, REUSED), (test_fsdp_averages_between_replicas, REUSED)]
    cases = [case for case in cases if ranks < 4 or case in on_four]
    cases = [case for case in cases if ranks == 2 or names or case[0] is not test_pairs_of_options_hold_for_200_steps]
    cases += [(trains, *each) for each in ({2: TRAINED, 4: TRAINED[1:2]}.get(ranks, []))]
    for function, *given in (case for case in cases if not names or case[0].__name__ in names):
        if rank == 0:
            print(function.__name__, *given, flush=True)
        function(*given)
        dist.barrier()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as store:
        count = int(sys.argv[1])
        torch.multiprocessing.spawn(run, (count, store, sys.argv[2:]), count)
