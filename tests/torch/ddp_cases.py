# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ddp_cases.py RANKS CASE[:SCHEME]...: cases of check_ddp_hook.py, one after the other on so many processes.

A case that fails ends all of them. It says what it is about; a scheme is one of oktopk's catalogue."""

import copy
import io
import struct
import sys
import tempfile

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn
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

    def __init__(self, scheme, optimizer="sgd", rate=0.01, cap=25.0):
        """`optimizer` is sgd, adamw, or corrected: plain SGD, with the momentum in the state."""
        torch.manual_seed(5)
        self.ddp = DistributedDataParallel(Crossed(), bucket_cap_mb=cap)
        self.borders = []  # of the buckets of each iteration
        self.state = oktopk_torch.state(self.ddp, scheme, momentum=0.9 if optimizer == "corrected" else 0.0)
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


def carried(state):
    """Residuals and velocities by parameter, from what `oktopk::save` has written: behind a header of 32 bytes the name of
    the type, then arrays, each behind its length: lengths, residuals, velocities, and what belongs to the buckets."""
    saved = state.state_dict()
    data, at = saved["state"].numpy().tobytes(), 32

    def array(kind):
        nonlocal at
        count, = struct.unpack_from("<Q", data, at)
        found = torch.frombuffer(bytearray(data), dtype=kind, count=count, offset=at + 8) if count else torch.zeros(0, dtype=kind)
        at += 8 + count * found.element_size()
        return found
    assert bytes(array(torch.uint8).tolist()).startswith(b"bucketed, 32-bit values, over any_allreduce")
    lengths = array(torch.int64).tolist()
    return [dict(zip(saved["parameters"], found.split(lengths))) if found.numel() else {}
            for found in (array(torch.float32), array(torch.float32))]


def residuals_of(state):
    """In the order of the parameters."""
    return torch.cat(list(carried(state)[0].values()))


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
