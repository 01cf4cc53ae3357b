# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ddp_cases.py RANKS CASE[:SCHEME]...: cases of check_ddp_hook.py, one after the other on so many processes.

A case that fails ends all of them. It says what it is about; a scheme is one of oktopk's catalogue."""

import copy
import io
import struct
import sys
import tempfile
import time

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

REUSED = "ok_topk(density=0.05, local_select=reused, global_select=reused, tau_prime=4, tau=3)"


class Crossed(nn.Module):
    """A network that uses its layers in another order than that of its parameters: DDP builds other buckets once."""

    def __init__(self):
        super().__init__()
        self.last = nn.Linear(64, 1)
        self.first = nn.Linear(8, 64)
        self.middle = nn.Linear(64, 64)

    def forward(self, inputs):
        return self.last(torch.relu(self.middle(torch.relu(self.first(inputs)))))


class Training:
    """A model with DDP, the hook and an optimizer; `loss_of_step` draws the same inputs whenever it is asked."""

    def __init__(self, scheme, optimizer="sgd", rate=0.01, cap=25.0, **options):
        """`optimizer` is sgd, adamw, or corrected: plain SGD, with the momentum in the state."""
        torch.manual_seed(5)
        self.ddp = DistributedDataParallel(Crossed(), bucket_cap_mb=cap)
        self.borders = []  # of the buckets of each iteration
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

    def loss_of_step(self, step):
        generator = torch.Generator().manual_seed(1000 * step + dist.get_rank())
        inputs = torch.randn(64, 8, generator=generator)
        return nn.functional.mse_loss(self.ddp(inputs), inputs.sin().sum(1, keepdim=True))

    def step(self, number):
        self.optimizer.zero_grad()
        loss = self.loss_of_step(number)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def weights(self):
        return torch.cat([each.detach().flatten() for each in self.ddp.parameters()])

    def saved(self):
        """All that a program would save, through a file."""
        file = io.BytesIO()
        torch.save([self.ddp.state_dict(), self.optimizer.state_dict(), self.state.state_dict()], file)
        file.seek(0)
        return torch.load(file)

    def load(self, saved):
        self.ddp.load_state_dict(saved[0])
        self.optimizer.load_state_dict(saved[1])
        self.state.load_state_dict(saved[2])


def of_all_ranks(tensor):
    every = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
    dist.all_gather(every, tensor)
    return every


def carried(state, kind=torch.float32):
    """Residuals and velocities by parameter, from what `oktopk::save` has written: behind a header of 32 bytes the name of
    the type, then arrays, each behind its length: lengths, residuals, velocities, and what belongs to the buckets."""
    return carried_of(state.state_dict(), kind)


def carried_of(saved, kind=torch.float32):
    data, at = saved["state"].numpy().tobytes(), 32

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


def residuals_of(state):
    """In the order of the parameters."""
    return torch.cat(list(carried(state)[0].values()))


def residuals_of_saved(saved):
    return torch.cat(list(carried_of(saved)[0].values()))


def message_of(call):
    """What an Error says that must come."""
    try:
        call()
    except oktopk_torch.Error as error:
        return str(error)
    raise AssertionError("no Error came")


def trains(scheme, optimizer):
    training = Training(scheme, optimizer, 0.003)
    losses = [training.step(i) for i in range(200)]
    assert sum(losses[-10:]) < 0.4 * sum(losses[:10]), losses
    assert all(torch.equal(each, training.weights()) for each in of_all_ranks(training.weights()))


def sgd(scheme):
    trains(scheme, "sgd")


def adamw(scheme):
    trains(scheme, "adamw")


def corrected(scheme):
    trains(scheme, "corrected")


def momentum_is_that_of_the_optimizer_where_all_is_sent(_):
    """Dense, the momentum of the state is the one that SGD has, also where DDP builds other buckets."""
    ours, theirs = Training("dense", "corrected", cap=0.01), Training("dense", "sgd", cap=0.01)
    for step in range(5):
        ours.step(step)
        theirs.step(step)
    assert ours.borders[0] != ours.borders[1]
    assert torch.allclose(ours.weights(), theirs.weights(), rtol=1e-4, atol=1e-6)


def dense_is_what_ddp_does(_):
    training = Training("dense")
    plain = DistributedDataParallel(copy.deepcopy(training.ddp.module))
    for step in range(3):
        training.loss_of_step(step).backward()
        training.ddp, ours = plain, training.ddp
        training.loss_of_step(step).backward()
        training.ddp = ours
    for ours, theirs in zip(training.ddp.parameters(), plain.parameters()):
        assert torch.allclose(ours.grad, theirs.grad, rtol=1e-4, atol=1e-6)


def nothing_is_lost(scheme):
    """Over all ranks, residuals and averages add up to the gradients, also where DDP builds other buckets."""
    training = Training(scheme, rate=0.0, cap=0.01)
    alone = copy.deepcopy(training.ddp.module)
    gradients = torch.zeros_like(training.weights())
    averages = torch.zeros_like(gradients)
    for step in range(4):
        training.step(step)
        averages += torch.cat([each.grad.flatten() for each in training.ddp.parameters()])
        training.ddp, ddp = alone, training.ddp
        alone.zero_grad()
        training.loss_of_step(step).backward()
        training.ddp = ddp
        gradients += torch.cat([each.grad.flatten() for each in alone.parameters()])
    assert training.borders[0] != training.borders[1] == training.borders[3]
    residuals = residuals_of(training.state)
    assert residuals.count_nonzero() > 0.5 * residuals.numel()
    left = sum(of_all_ranks(residuals)) + dist.get_world_size() * averages
    assert torch.allclose(left, sum(of_all_ranks(gradients)), rtol=1e-4, atol=1e-5)


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


def unused_parameters_lose_nothing(scheme):
    """Parameters that one rank, or no rank, uses in a step: residuals and what the optimizer sees add up to the gradients
    over 200 steps. Also with momentum, buckets of one parameter and of several, gradients that lie in buckets, frozen
    parameters, and passes without synchronisation before, of which DDP counts no use."""
    for how in ({"bucket_cap_mb": 0.0001}, {"gradient_as_bucket_view": True}, {"momentum": 0.9}, {"no_sync": True},
                {"freezes": True}):
        momentum, no_sync, freezes = how.pop("momentum", 0.0), how.pop("no_sync", False), how.pop("freezes", False)
        ddp = DistributedDataParallel(Optional(), find_unused_parameters=True, **how)
        state = oktopk_torch.state(ddp, scheme, momentum=momentum)
        ddp.register_comm_hook(state, oktopk_torch.hook)
        ranks, rank, parts = dist.get_world_size(), dist.get_rank(), len(ddp.module.parts)
        went_in = torch.zeros(parts, 40, dtype=torch.float64)
        velocity, seen, waits = torch.zeros_like(went_in), torch.zeros_like(went_in), 0
        for step in range(200):
            for each in ddp.parameters():
                each.grad = None
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
            left = sum(of_all_ranks(residuals)) + ranks * seen
            assert torch.allclose(left, sum(of_all_ranks(went_in)), rtol=1e-4, atol=1e-3), (how, left)
        else:
            velocities = carried(state)[1]
            ddp(inputs_of(200, rank), [0]).backward()
            after = carried(state)[1]
            assert torch.equal(after["parts.3"], velocities["parts.3"])
            assert not torch.equal(after["parts.0"], velocities["parts.0"])


def a_use_without_synchronisation_is_none(_):
    """DDP leaves the gradient of a parameter alone that was used within `no_sync` only: the residual waits as well."""
    ddp = DistributedDataParallel(Optional(2, 64), find_unused_parameters=True)
    state = oktopk_torch.state(ddp, "ok_topk(density=0.1)")
    ddp.register_comm_hook(state, oktopk_torch.hook)
    ddp(torch.ones(2, 64), [0, 1]).backward()
    waiting = carried(state)[0]["parts.1"]
    with ddp.no_sync():
        ddp(torch.ones(2, 64), [0, 1]).backward()
    ddp(torch.ones(2, 64), [0]).backward()
    assert waiting.count_nonzero() > 32
    assert torch.equal(carried(state)[0]["parts.1"], waiting)


def an_unused_parameter_gets_all_later(_):
    """What waits in the residual of a parameter that nobody uses comes when it is used again, also with gradients of 0."""
    moved = []
    for hooked, unused in ((False, 5), (True, 0), (True, 5)):
        ddp = DistributedDataParallel(Optional(2, 64), find_unused_parameters=True)
        if hooked:
            ddp.register_comm_hook(oktopk_torch.state(ddp, "ok_topk(density=0.1)"), oktopk_torch.hook)
        moved.append(torch.zeros(64))
        for use, scale in [([0, 1], 1)] + unused * [([0], 0)] + 30 * [([0, 1], 0)]:
            for each in ddp.parameters():
                each.grad = None
            ddp(scale * torch.stack([torch.ones(64), torch.arange(1.0, 65)]), use).backward()
            gradient = ddp.module.parts[1].grad
            assert (gradient is None) == (use == [0])
            moved[-1] += 0 if gradient is None else gradient
    assert all(torch.allclose(each, torch.arange(1.0, 65)) for each in moved), moved


def a_gradient_that_stays_is_not_touched(_):
    """Of a parameter that no rank uses, DDP leaves the gradient as it is, and so does the hook, where it lies in a bucket
    as well; it does not go into the residual."""
    for view in (False, True):
        ddp = DistributedDataParallel(Optional(2, 64), find_unused_parameters=True, gradient_as_bucket_view=view)
        state = oktopk_torch.state(ddp, "ok_topk(density=0.7)")
        ddp.register_comm_hook(state, oktopk_torch.hook)
        ddp(torch.ones(2, 64), [0, 1]).backward()
        before, waiting = ddp.module.parts[1].grad.clone(), carried(state)[0]["parts.1"]
        ddp(torch.ones(2, 64), [0]).backward()  # its gradients add up
        assert before.count_nonzero() > 0 and torch.equal(ddp.module.parts[1].grad, before)
        assert waiting.count_nonzero() > 0 and torch.equal(carried(state)[0]["parts.1"], waiting)


def a_model_with_a_state_is_copied_and_saved(_):
    """As without one: what the state has put on the model is no obstacle."""
    ddp = DistributedDataParallel(Optional(2, 8), find_unused_parameters=True)
    ddp.register_comm_hook(oktopk_torch.state(ddp, "topk_a"), oktopk_torch.hook)
    assert torch.equal(copy.deepcopy(ddp).module.parts[1], ddp.module.parts[1])
    torch.save(ddp, io.BytesIO())


def a_static_graph_leaves_residuals_of_unused_parameters(_):
    """Also those that come from a saved state, of a program that has used them."""
    large_second = torch.tensor([0.01, 1.0])[:, None].expand(2, 64)
    before = DistributedDataParallel(Optional(2, 64))
    saving = oktopk_torch.state(before, "ok_topk(density=0.1)")
    before.register_comm_hook(saving, oktopk_torch.hook)
    for _step in range(3):
        before(large_second, [0, 1]).backward()
    waiting = carried(saving)[0]["parts.1"]
    assert waiting.count_nonzero() > 32
    ddp = DistributedDataParallel(Optional(2, 64), static_graph=True)
    state = oktopk_torch.state(ddp, "ok_topk(density=0.1)")
    ddp.register_comm_hook(state, oktopk_torch.hook)
    state.load_state_dict(saving.state_dict())
    for _step in range(5):
        ddp(large_second, [0]).backward()
        assert ddp.module.parts[1].grad is None
    assert torch.equal(carried(state)[0]["parts.1"], waiting)


def goes_on_to_the_bit(scheme):
    """A new program that loads does what the old one does."""
    for cap in (25.0, 0.01):
        for optimizer in ("sgd", "adamw", "corrected"):
            whole = Training(scheme, optimizer, cap=cap)
            for step in range(5):
                whole.step(step)
            saved = whole.saved()
            again = Training(scheme, optimizer, cap=cap)
            again.load(saved)
            for step in range(5, 12):
                assert whole.step(step) == again.step(step)
                assert torch.equal(whole.weights(), again.weights()), step
            assert again.borders[0] != again.borders[1] == whole.borders[-1]
            ours, theirs = again.state.state_dict(), whole.state.state_dict()
            assert torch.equal(ours["state"], theirs["state"]) and ours["scheme"] == theirs["scheme"]
            assert [len(each) for each in carried(again.state)] == [6, 6 if optimizer == "corrected" else 0]
            # Without the states of the algorithm it would be another run: what is compared tells.
            without = Training(scheme, optimizer, cap=cap)
            without.ddp.load_state_dict(saved[0])
            without.optimizer.load_state_dict(saved[1])
            without.step(5)
            assert residuals_of(without.state).ne(residuals_of(whole.state)).any()


def says_what_is_wrong(_):
    """On every rank, and the next state can be made."""
    model, last = nn.Linear(8, 8), dist.get_rank() == dist.get_world_size() - 1
    names = message_of(lambda: oktopk_torch.state(model, "okk_topk"))
    assert 'there is no algorithm "okk_topk"; there are ok_topk, paper_ok_topk, topk_a' in names
    assert "has format, local, " in message_of(lambda: oktopk_torch.state(model, "ok_topk(select=exact)"))
    assert "packed" in message_of(lambda: oktopk_torch.state(model, "ok_topk(format=zip)"))
    for wrong, words in (("2", "is not in (0, 1]"), ("0", "is not in (0, 1]"), ("many", "is no number")):
        assert words in message_of(lambda wrong=wrong: oktopk_torch.state(model, f"topk_a(density={wrong})"))
    assert "no algorithm" in message_of(lambda: oktopk_torch.state(model, "topk_b" if last else "topk_a"))
    assert "disagree" in message_of(lambda: oktopk_torch.state(model, "topk_a" if last else "gtopk"))
    assert "density=" in message_of(lambda: oktopk_torch.state(model, f"topk_a(density={0.1 if last else 0.2})"))
    longer = nn.Linear(8, 9 if last else 8)
    assert "length" in message_of(lambda: oktopk_torch.state(longer, "topk_a"))
    assert "momentum" in message_of(lambda: oktopk_torch.state(model, "topk_a", momentum=1.0))
    assert "nesterov" in message_of(lambda: oktopk_torch.state(model, "topk_a", nesterov=True))
    assert issubclass(oktopk_torch.Error, RuntimeError)
    oktopk_torch.state(model, "topk_a")


def refuses_a_state_that_does_not_fit(scheme):
    """On every rank, also where only one has it; and goes on as if nothing had been."""
    training = Training(scheme)
    for step in range(3):
        training.step(step)
    before, last = training.saved(), dist.get_rank() == dist.get_world_size() - 1
    other = Training("ok_topk(density=0.05, format=packed)")
    assert "the state is of" in message_of(lambda: other.state.load_state_dict(before[2]))

    def spoilt(key, value):
        return {**before[2], key: value} if last else before[2]
    load, saved = training.state.load_state_dict, before[2]["state"]
    assert "do not fit: ['nobody']" in message_of(
        lambda: load(spoilt("parameters", before[2]["parameters"] + ["nobody"])))
    assert "another order" in message_of(lambda: load(spoilt("parameters", before[2]["parameters"][::-1])))
    assert "type Float" in message_of(lambda: load(spoilt("state", saved.float())))
    assert "cut short" in message_of(lambda: load(spoilt("state", saved[:-1])))
    for at in range(0, saved.numel(), 1 + saved.numel() // 20):
        damaged = saved.clone()
        damaged[at] ^= 64
        assert "checkpoint" in message_of(lambda damaged=damaged: load(spoilt("state", damaged)))
    assert "none of oktopk_torch" in message_of(lambda: load(None if last else before[2]))
    assert "none of oktopk_torch" in message_of(lambda: load({} if last else before[2]))
    assert "none of oktopk_torch" in message_of(lambda: load(spoilt("state", b"")))
    other_model = oktopk_torch.state(nn.Linear(8, 8), scheme)
    assert "other" in message_of(lambda: load(spoilt("state", other_model.state_dict()["state"])))
    moving = Training(scheme, "corrected")
    assert "another momentum" in message_of(lambda: moving.state.load_state_dict(before[2]))
    assert torch.equal(training.saved()[2]["state"], saved)


def a_fault_of_one_rank_comes_to_all(scheme):
    """And the next iteration works: with one bucket, with several, and with those of a state that was loaded."""
    loaded = Training(scheme, cap=0.01)
    for step in range(3):
        loaded.step(step)
    again = Training(scheme, cap=0.01)
    again.load(loaded.saved())
    last = dist.get_world_size() - 1
    for training in (Training(scheme), Training(scheme, cap=0.01), loaded, again):
        weights = training.weights()
        loss = training.loss_of_step(10)
        if dist.get_rank() == last:
            loss = loss * float("nan")
        training.optimizer.zero_grad()
        try:
            loss.backward()
        except RuntimeError as error:
            assert f"rank {last}: the value at index 0 is not finite" in str(error), error
        else:
            raise AssertionError("no error came")
        assert torch.equal(weights, training.weights())
        for step in range(11, 14):
            training.step(step)
        assert not torch.equal(weights, training.weights())
        assert all(torch.equal(each, training.weights()) for each in of_all_ranks(training.weights()))


def averages_by_key_are_those_of_the_hook(scheme):
    """To the bit, on the same gradients, with all options: a bucket of one parameter, and a call by key."""
    for kind in (torch.float32, torch.float64):
        ddp = DistributedDataParallel(Optional(1, 300).to(kind))
        how = {"momentum": 0.9, "clip_norm": 15.0, "residual_decay": 0.9, "density": oktopk_torch.density_schedule(0.02, 1.0, 4)}
        ddp.register_comm_hook(oktopk_torch.state(ddp, scheme, **how), oktopk_torch.hook)
        average = oktopk_torch.averager(None, scheme, dtype=kind, **how)
        for step in range(12):
            inputs = inputs_of(step, dist.get_rank(), 1, 300).to(kind)
            ddp.zero_grad()
            ddp(inputs, [0]).backward()
            ours = average(inputs[0], key="x")
            assert torch.equal(ours, ddp.module.parts[0].grad), step
        assert 0 < ours.count_nonzero() < 50


def averages_by_key_lose_nothing(scheme):
    """Also in half precision, of tensors that are not contiguous, at once and as futures; and a program that loads goes on
    to the bit."""
    average, rank, ranks = oktopk_torch.averager(None, scheme), dist.get_rank(), dist.get_world_size()
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
        left = sum(of_all_ranks(carried(average)[0][str(kind)])) + ranks * came_out.flatten()
        assert torch.allclose(left, sum(of_all_ranks(went_in.flatten())), rtol=tolerance, atol=tolerance), kind
    again = oktopk_torch.averager(None, scheme)
    again.load_state_dict(average.state_dict())
    for step in range(5):
        ours, theirs = (each(torch.full((7,), float(step + rank)), key="other") for each in (average, again))
        assert torch.equal(ours, theirs)
    assert torch.equal(average.state_dict()["state"], again.state_dict()["state"])


def an_average_of_something_else_is_an_error(_):
    """On every rank, also where one rank alone has it, and the next call works."""
    average, last = oktopk_torch.averager(None, "ok_topk"), dist.get_rank() == dist.get_world_size() - 1
    average(torch.ones(8), key="a")
    for wrong, words in ((torch.ones(8, dtype=torch.float64), "float64"), (torch.ones(8, dtype=torch.int64), "int64"),
                         (torch.ones(9), "has 9 values, and had 8"), (torch.ones(8).to_sparse(), "sparse"),
                         (torch.ones(8, device="meta"), "lies on meta")):
        said = message_of(lambda wrong=wrong: average(wrong if last else torch.ones(8), key="a"))
        assert words in said or not last, said
        said = message_of(lambda wrong=wrong: average(wrong, key="new")) if words != "has 9 values, and had 8" else words
        assert words in said, said
        average(torch.ones(8), key="a")
    assert "key" in message_of(lambda: average(torch.ones(8), key="b" if last else "c"))
    nan = torch.full((8,), float("nan") if last else 1.0)
    assert "not finite" in message_of(lambda: average(nan, key="a"))
    assert "not finite" in message_of(lambda: average(nan, key="a", async_op=True).wait())
    assert torch.equal(average(torch.zeros(8), key="d"), torch.zeros(8))
    assert "no text" in message_of(lambda: oktopk_torch.averager(None, 3))
    assert "neither" in message_of(lambda: oktopk_torch.averager(None, dtype=torch.float16))


def what_torch_cannot_write_to_is_an_error(_):
    """Of the future alone. Tensors of the inference mode are written to, of other types and not contiguous as well."""
    average = oktopk_torch.averager(None, "topk_a(density=1)")
    for kind in (torch.float32, torch.float16):
        with torch.inference_mode():
            tensor = torch.full((3, 5), 1.0 + dist.get_rank()).to(kind).t()
        for how in ({}, {"async_op": True}):
            average(tensor, key="a", **how).wait() if how else average(tensor, key="a")
            assert (tensor == (1 + dist.get_world_size()) / 2).all(), tensor
    one = torch.ones(1).expand(15)
    assert "copy of an average" in message_of(lambda: average(one, key="a"))
    future = average(one, key="a", async_op=True)
    assert "copy of an average" in message_of(future.wait)
    assert average(torch.ones(15), key="a").equal(torch.ones(15))


def a_callback_that_would_wait_is_an_error(_):
    """It runs on the thread that does the work; the call would wait for itself. Starting work is allowed."""
    average, said, futures = oktopk_torch.averager(), [], []
    average(torch.ones(8), key="a")

    def ends(_):
        said.extend(message_of(each) for each in (average.residual_norm, lambda: average(torch.ones(8), key="a")))
        futures.append(average(torch.ones(8), key="a", async_op=True))
    dist.barrier()
    if dist.get_rank() == 0:
        time.sleep(0.5)  # so that the others have their callbacks before anything is done
        average(torch.ones(8), key="a")
        average(torch.ones(8), key="a")
    else:
        average(torch.ones(8), key="a", async_op=True).add_done_callback(ends)
        average.residual_norm()  # behind the callback
        futures[0].wait()
        assert len(said) == 2 and all("a callback of a future cannot wait" in each for each in said), said


def a_group_that_does_not_do_is_refused(_):
    """By name, before anything is sent."""
    class Nccl(dist.ProcessGroup):
        def name(self):
            return "nccl"
    first = dist.new_group([0])
    if dist.get_rank() != 0:
        assert "no process group" in message_of(lambda: oktopk_torch.averager(first))
    assert "nccl" in message_of(lambda: oktopk_torch.averager(Nccl(dist.get_rank(), dist.get_world_size())))


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


def a_scaler_sees_infinities_and_skips_the_step(scheme):
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
            left = sum(of_all_ranks(residuals)) + ranks * came_out
            assert torch.allclose(left, sum(of_all_ranks(went_in)), rtol=1e-5, atol=1e-4)
            assert state.last_step()["skipped"] == 1 and state.last_step()["steps"] == 150
    assert skipped[0] == skipped[1] == [50]


def an_average_that_overflows_in_half_precision_is_skipped(_):
    """Gradients are finite, and what has waited in the residual is not, times the scale: it waits on."""
    ddp, scaler = DistributedDataParallel(Optional(1, 60).half()), Scaler(1024.0)
    state = oktopk_torch.state(ddp, "topk_a(density=0.1)", grad_scaler=scaler)
    ddp.register_comm_hook(state, oktopk_torch.hook)
    optimizer, came_out = torch.optim.SGD(ddp.parameters(), 0.0), torch.zeros(60)
    taken = 0
    for step in range(12):
        optimizer.zero_grad()
        ddp(torch.full((1, 60), 24.0).half() * (1 + dist.get_rank() / 8), [0]).backward(torch.tensor(scaler.get_scale()).half())
        scaler.step(optimizer, step)
        if step not in scaler.skipped:
            came_out += ddp.module.parts[0].grad.float()
            taken += 1
    assert scaler.skipped and scaler.skipped[0] == 2 and taken == 12 - len(scaler.skipped)
    gradients = sum(24.0 * (1 + rank / 8) for rank in range(dist.get_world_size())) * taken
    left = sum(of_all_ranks(residuals_of(state))) + dist.get_world_size() * came_out
    assert torch.allclose(left, torch.full((60,), gradients), rtol=1e-2), left


def a_step_with_a_fault_is_skipped_on_request(scheme):
    """Without a scaler: gradients are None, so no optimizer moves anything, whatever buckets had come before."""
    training = Training(scheme, "adamw", cap=0.01, skip_step_on_fault=True)
    for step in range(6):
        weights, residuals = training.weights(), residuals_of(training.state)
        training.optimizer.zero_grad()
        loss = training.loss_of_step(step)
        (loss * float("nan") if step == 3 and dist.get_rank() == 0 else loss).backward()
        training.optimizer.step()
        if step == 3:
            assert training.state.last_step()["was_skipped"] == 1
            assert torch.equal(weights, training.weights()) and torch.equal(residuals, residuals_of(training.state))
        else:
            assert not torch.equal(weights, training.weights()) and training.state.last_step()["was_skipped"] == 0
    assert "1 of them skipped" in training.state.report()


def what_cannot_be_averaged_is_refused_by_name(_):
    """When the state is made, on every rank; what only the backward pass shows is an Error there."""
    two = nn.Sequential(nn.Linear(4, 4), nn.EmbeddingBag(5, 4, sparse=True))
    said = message_of(lambda: oktopk_torch.state(two))
    assert "the gradient of 1.weight is a sparse tensor" in said and "sparse=False" in said, said
    assert "the parameter 0.bias lies on meta" in message_of(
        lambda: oktopk_torch.state(nn.Sequential(nn.ParameterDict({"bias": nn.Parameter(torch.ones(3, device="meta"))}))))
    last = dist.get_rank() == dist.get_world_size() - 1
    one_alone = nn.ParameterDict({"weight": nn.Parameter(torch.ones(3, dtype=torch.complex64 if last else torch.float32))})
    assert "the parameter weight is of type torch.complex64" in message_of(lambda: oktopk_torch.state(one_alone))
    first, second, third = (DistributedDataParallel(nn.Linear(4, 4)) for _ in range(3))
    state = oktopk_torch.state(first)
    second.register_comm_hook(state, oktopk_torch.hook)
    third.register_comm_hook(None, oktopk_torch.hook)
    assert "not of the module" in message_of(lambda: second(torch.ones(1, 4)).sum().backward())
    assert "takes an oktopk_torch.state" in message_of(lambda: third(torch.ones(1, 4)).sum().backward())


def a_float64_model_and_a_mixed_one_lose_nothing(scheme):
    """Sums are of float64 where a parameter is; parameters of other types are in buckets of their own."""
    kinds = [torch.float64, torch.float64, torch.float32, torch.float16]
    model = Optional()
    for each, kind in zip(model.parts, kinds):
        each.data = each.data.to(kind)
    ddp = DistributedDataParallel(model)
    state = oktopk_torch.state(ddp, scheme)
    ddp.register_comm_hook(state, oktopk_torch.hook)
    assert state.dtype == torch.float64
    went_in, came_out = torch.zeros(4, 40, dtype=torch.float64), torch.zeros(4, 40, dtype=torch.float64)
    for step in range(20):
        ddp.zero_grad()
        inputs = inputs_of(step, dist.get_rank())
        ddp(list(row.to(kind) for row, kind in zip(inputs, kinds)), range(4)).backward()
        went_in += inputs
        came_out += torch.stack([each.grad.double() for each in model.parts])
    residuals = torch.stack([carried(state, torch.float64)[0][f"parts.{i}"] for i in range(4)])
    left = sum(of_all_ranks(residuals)) + dist.get_world_size() * came_out
    right = sum(of_all_ranks(went_in))
    for i, tolerance in enumerate((1e-6, 1e-6, 1e-5, 1e-1)):
        assert torch.allclose(left[i], right[i], rtol=tolerance, atol=tolerance), kinds[i]


def densities_follow_a_schedule(_):
    """From dense to sparse, also across a saved state; and a density that is set is that of the next step."""
    schedule = oktopk_torch.density_schedule(0.01, 1.0, 8, 4)
    assert [round(schedule(i), 4) for i in (0, 2, 4, 6, 8, 100)] == [1.0, 0.3162, 0.1, 0.0316, 0.01, 0.01]
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
        assert "(0, 1]" in message_of(lambda wrong=wrong: average.set_density(wrong))
    assert "warm-up" in message_of(lambda: oktopk_torch.density_schedule(0.1, 1, -1))
    assert "takes no other k" in message_of(lambda: oktopk_torch.averager(None, "dense").set_density(0.5))


def a_density_is_checked_when_an_averager_is_made(_):
    """And one that was set is saved, in place of a schedule. A text with k waits for the length of the first tensor."""
    for wrong in (0, -0.5, float("nan"), lambda step: 0):
        assert "(0, 1]" in message_of(lambda wrong=wrong: oktopk_torch.averager(None, "topk_a", density=wrong))
        assert "(0, 1]" in message_of(lambda wrong=wrong: oktopk_torch.state(nn.Linear(8, 8), "topk_a", density=wrong))
    assert "takes no other k" in message_of(lambda: oktopk_torch.averager(None, "dense", density=0.5))
    late = oktopk_torch.averager(None, "topk_a", density=lambda step: 0.5 if step < 1 else 0)
    late(torch.ones(8))
    assert "(0, 1]" in message_of(lambda: late(torch.ones(8)))
    average = oktopk_torch.averager(None, "topk_a(k=3)")
    average(torch.ones(8))
    assert average.last_step()["selected"] == 3
    assert "clip_norm" in message_of(lambda: oktopk_torch.averager(None, "topk_a(k=3)", clip_norm=-1.0))
    assert average.state_dict()["density"] is None
    average.set_density(0.5)
    for how in ({}, {"density": lambda step: 1.0}):
        again = oktopk_torch.averager(None, "topk_a(k=3)", **how)
        again.load_state_dict(average.state_dict())
        again(torch.ones(8))
        assert again.last_step()["selected"] == 4 and again.state_dict()["density"] == 0.5
    last = dist.get_rank() == dist.get_world_size() - 1
    for wrong, words in (("much", "none of oktopk_torch"), (2.0, "(0, 1]"), (0.25, "disagree")):
        assert words in message_of(
            lambda wrong=wrong: again.load_state_dict({**average.state_dict(), "density": wrong if last else 0.5}))
    again(torch.ones(8))
    assert again.last_step()["selected"] == 4
    again.load_state_dict(oktopk_torch.averager(None, "topk_a(k=3)").state_dict())
    again(torch.ones(9))


def clipping_does_not_see_what_takes_no_part(_):
    """A gradient that stays on a parameter that no rank uses."""
    ddp = DistributedDataParallel(Optional(2, 64), find_unused_parameters=True)
    ddp.register_comm_hook(oktopk_torch.state(ddp, "topk_a(density=1)", clip_norm=1.0), oktopk_torch.hook)
    ddp(torch.ones(2, 64), [0, 1]).backward()
    used, stays = ddp.module.parts
    used.grad = None
    stays.grad.fill_(100)
    ddp(torch.full((2, 64), 0.0625), [0]).backward()  # of norm 0.5
    assert used.grad.equal(torch.full((64,), 0.0625)) and stays.grad.equal(torch.full((64,), 100.0)), used.grad


def a_state_with_a_tensor_in_no_bucket_is_loaded(scheme):
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


def options_of_the_residual_act(_):
    """Clipping bounds what goes in; decay leaves a share of the residual; its norm is told."""
    for options, first, second in (({}, 1.0, 2.0), ({"residual_decay": 0.5}, 1.0, 1.5), ({"residual_decay": 0.0}, 1.0, 1.0),
                                   ({"clip_norm": 5.0}, 0.5, 1.0)):
        average = oktopk_torch.averager(None, "topk_a(k=0)", **options)
        for expected in (first, second):
            average(torch.ones(100), key="x")
            assert torch.allclose(carried(average)[0]["x"], torch.full((100,), expected)), options
            assert abs(average.residual_norm() - 10 * expected) < 1e-4
    for wrong in ({"residual_decay": 1.5}, {"clip_norm": -1.0}):
        assert next(iter(wrong)) in message_of(lambda wrong=wrong: oktopk_torch.averager(None, **wrong))


def a_report_says_what_runs(_):
    training = Training("ok_topk(density=0.05, format=packed)", cap=0.01)
    for step in range(4):
        training.step(step)
    last, said = training.state.last_step(), training.state.report()
    assert last["steps"] == 4 and last["values"] == 4801 and last["ranks"] == dist.get_world_size()
    assert 0 <= last["hidden_seconds"] <= last["seconds"] and last["words"] < 4801
    assert last["hidden_seconds"] <= last["hideable_seconds"] + 1e-9 and last["step_values"] == 4801
    assert f"{4 * last['words']:.0f} bytes sent" in said and "of a dense ring's" in said and "hidden" in said
    assert said.count("which is ok_topk") == last["buckets"] == len(training.borders[-1]), said
    automatic = oktopk_torch.averager(None, "automatic")
    automatic(torch.ones(1000))
    assert "ms predicted" in automatic.report(), automatic.report()
    dense = Training("dense")
    for step in range(3):
        dense.step(step)
    assert " 1 of a dense ring's" in dense.state.report() and "4801 of 4801" in dense.state.report()


def a_state_goes_on_with_other_ranks(scheme):
    """All that three ranks held back is there on the ranks that go on, in units of their averages."""
    ranks, rank = dist.get_world_size(), dist.get_rank()
    training = Training(scheme, cap=0.01)
    for step in range(3):
        training.step(step)
    saved = [None] * ranks
    dist.all_gather_object(saved, training.state.state_dict())
    for before in (1, ranks + 1):  # as if so many had saved
        states = [{**saved[i % ranks], "ranks": before} for i in range(before)]
        again = Training(scheme, cap=0.01)
        assert "other_ranks=True" in message_of(lambda states=states, again=again: again.state.load_state_dict(states[0]))
        again.state.load_state_dict(states, other_ranks=True)
        held = sum(residuals_of_saved(each) for each in states)
        now = sum(of_all_ranks(residuals_of(again.state)))
        assert torch.allclose(now * before, held * ranks, rtol=1e-5, atol=1e-7)
        again.step(3)
    one = Training(scheme, cap=0.01)
    one.state.load_state_dict({**saved[rank], "ranks": ranks + 1}, other_ranks=True)
    assert torch.allclose(residuals_of(one.state) * (ranks + 1), residuals_of_saved(saved[rank]) * ranks, rtol=1e-5)
    assert "other parameters" in message_of(
        lambda: one.state.load_state_dict([{**saved[0], "state": oktopk_torch.state(nn.Linear(8, 8)).state_dict()["state"]}],
                                          other_ranks=True))


def what_ddp_offers_trains(scheme):
    """Autocast, ZeRO, `no_sync`, `join` with uneven inputs, buckets as gradients, and two modules over two groups: losses
    go down, and weights are the same on all ranks."""
    rank = dist.get_rank()

    def check(ddp, optimizer, step_of, steps=120):
        losses = [step_of(step) for step in range(steps)]
        mine = torch.cat([each.detach().flatten() for each in ddp.parameters()])
        assert sum(losses[-10:]) < 0.6 * sum(losses[:10]), (step_of.__name__, losses)
        assert all(torch.equal(each, mine) for each in of_all_ranks(mine)), step_of.__name__
        del optimizer

    def made(**options):
        torch.manual_seed(5)
        ddp = DistributedDataParallel(Crossed(), **options)
        ddp.register_comm_hook(oktopk_torch.state(ddp, scheme), oktopk_torch.hook)
        return ddp, torch.optim.AdamW(ddp.parameters(), 0.003)

    def loss_of(ddp, step):
        inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(1000 * step + rank))
        return nn.functional.mse_loss(ddp(inputs).float(), inputs.sin().sum(1, keepdim=True))

    def move(optimizer, loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    ddp, optimizer = made(gradient_as_bucket_view=True)

    def autocast(step):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = loss_of(ddp, step)
        return move(optimizer, loss)
    check(ddp, optimizer, autocast)
    ddp, _ = made()
    optimizer = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.AdamW, lr=0.003)

    def zero(step):
        return move(optimizer, loss_of(ddp, step))
    check(ddp, optimizer, zero)
    ddp, optimizer = made()

    def no_sync(step):
        optimizer.zero_grad()
        with ddp.no_sync():
            loss_of(ddp, 2 * step).backward()
        loss = loss_of(ddp, 2 * step + 1)
        loss.backward()
        optimizer.step()
        return loss.item()
    check(ddp, optimizer, no_sync)
    ddp, optimizer = made()
    with ddp.join():
        for step in range(20 + 5 * rank):
            move(optimizer, loss_of(ddp, step))
    mine = torch.cat([each.detach().flatten() for each in ddp.parameters()])
    assert all(torch.equal(each, mine) for each in of_all_ranks(mine))
    (ddp, optimizer), (other, of_other) = made(), made(process_group=dist.new_group(range(dist.get_world_size())))

    def two_modules(step):
        return move(optimizer, loss_of(ddp, step)) + move(of_other, loss_of(other, step))
    check(other, of_other, two_modules)


def local_steps_with_an_outer_average_stay_together(scheme):
    """No DDP: H steps of each rank alone, then the mean of the ways, sparse, from common weights."""
    torch.manual_seed(1)
    model, average, losses = Crossed(), oktopk_torch.averager(None, scheme, residual_decay=0.95), []
    common = [each.detach().clone() for each in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    for step in range(240):
        inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(1000 * step + dist.get_rank()))
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), inputs.sin().sum(1, keepdim=True))
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
        if step % 8 == 7:
            for i, (kept, each) in enumerate(zip(common, model.parameters())):
                way = kept - each.detach()
                kept -= average(way, key=str(i))
                each.data.copy_(kept)
    assert sum(losses[-10:]) < 0.5 * sum(losses[:10]), losses
    assert all(torch.equal(each, common[1].flatten()) for each in of_all_ranks(common[1].flatten()))


def run(rank, ranks, folder, cases):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    for each in cases:
        name, _, scheme = each.partition(":")
        if rank == 0:
            print(each, flush=True)
        globals()[name](scheme or REUSED)
        dist.barrier()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as store:
        count = int(sys.argv[1])
        torch.multiprocessing.spawn(run, (count, store, sys.argv[2:]), count)
