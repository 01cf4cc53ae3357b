# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""adam_cases.py RANKS [CASE...]: cases of check_ddp_hook.py with residuals of directions, for so many processes.

A case that fails ends all of them."""

import copy
import shutil

import oktopk_torch
import torch
import torch.distributed as dist
from ddp_cases import (Crossed, Optional, Scaler, bytes_of, check_same_everywhere, hooked, in_small_buckets, inputs_of, is_last, loss_of,
                       message_of, move, of_all_ranks, refused, shared_folder, spawn, weights_of)
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ADAM = (0.95, 1e-8)
SPARSE = "ok_topk(density=0.05)"


class Images(nn.Module):
    """Convolutions, whose weights lie in another order with channels_last."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(3, 8, 3), nn.Conv2d(8, 1, 3)

    def forward(self, inputs):
        return self.last(torch.relu(self.first(inputs))).mean((1, 2, 3))


def trained(state, ddp, steps, optimizer=None, begin=0, **options):
    """The optimizer, after steps with the state."""
    optimizer = optimizer or oktopk_torch.AdamW(ddp.parameters(), lr=0.01, **options)
    for step in range(begin, begin + steps):
        move(optimizer, lambda step=step: loss_of(ddp, step))
    assert state.adam == ADAM
    return optimizer


class Reference:
    """AdamW with second moments of rows and columns and without momentum, in double precision, on averages of dense gradients."""

    def __init__(self, parameters, rates, weight_decay):
        self.weights = [each.detach().double().clone() for each in parameters]
        self.squares, self.steps, self.rates, self.decay = [None] * len(self.weights), 0, rates, weight_decay

    @staticmethod
    def means(gradient):
        """Of squares: of rows and columns, or of each value."""
        if gradient.dim() < 2 or gradient.shape[0] in (1, gradient.numel()):
            return [gradient.flatten() ** 2]
        matrix = gradient.flatten(1) ** 2
        return [matrix.mean(1), matrix.mean(0)]

    def step(self, gradients_of_ranks):
        """With the gradients of each rank; gives the directions of all of them."""
        beta2, epsilon = ADAM
        self.steps += 1
        for i, own in enumerate(zip(*gradients_of_ranks)):
            means = [sum(each) / len(own) for each in zip(*map(self.means, own))]
            before = self.squares[i] or [torch.zeros_like(each) for each in means]
            self.squares[i] = [beta2 * one + (1 - beta2) * other for one, other in zip(before, means)]
            squares = self.squares[i]
            moment = squares[0] if len(squares) == 1 else squares[0][:, None] * squares[1] / squares[0].mean()
            root = (moment / (1 - beta2 ** self.steps)).sqrt().reshape(own[0].shape)
            rate = self.rates[self.steps - 1]
            self.weights[i] *= 1 - rate * self.decay
            self.weights[i] -= rate * sum(own) / len(own) / (root + epsilon)


def test_with_all_values_it_is_adamw_with_row_and_column_moments():
    """To rounding, against a loop of torch, with a schedule, weight decay and groups of parameters."""
    torch.manual_seed(2)
    ddp, state = hooked(Crossed(), "ok_topk(density=1)", {"adam": ADAM})
    parameters = list(ddp.parameters())
    optimizer = oktopk_torch.AdamW([{"params": parameters[:2]}, {"params": parameters[2:]}], lr=0.01, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 / (1 + step / 5))
    alone = copy.deepcopy(ddp.module).double()
    reference = Reference(alone.parameters(), [0.01 / (1 + step / 5) for step in range(20)], 0.1)
    for step in range(20):
        for mine, theirs in zip(alone.parameters(), reference.weights):
            mine.data.copy_(theirs)
        inputs = torch.randn(64, 8, generator=torch.Generator().manual_seed(1000 * step + dist.get_rank())).double()
        alone.zero_grad()
        nn.functional.mse_loss(alone(inputs), inputs.sin().sum(1, keepdim=True)).backward()
        own = [each.grad for each in alone.parameters()]
        reference.step(list(zip(*[of_all_ranks(each) for each in own])))
        move(optimizer, lambda step=step: loss_of(ddp, step))
        schedule.step()
    for mine, theirs in zip(parameters, reference.weights):
        assert torch.allclose(mine.double(), theirs, rtol=1e-3, atol=2e-4), (mine, theirs)
    check_same_everywhere(weights_of(ddp))
    assert "directions for AdamW: beta2 0.95, epsilon 1e-08" in state.report()


class Matrix(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(20, 15))

    def forward(self, inputs):
        return (self.weight * inputs).sum()


def test_hook_and_averager_have_the_same_bits():
    """With all options, on the same gradients: a bucket of one parameter, and a call by key."""
    for kind in (torch.float32, torch.float64):
        how = {"clip_norm": 10.0, "residual_decay": 0.9, "adam": ADAM, "density": oktopk_torch.density_schedule(0.02, 1.0, 4)}
        ddp, _ = hooked(Matrix().to(kind), SPARSE, how)
        average = oktopk_torch.averager(None, SPARSE, dtype=kind, **how)
        for step in range(12):
            inputs = torch.randn(20, 15, dtype=kind, generator=torch.Generator().manual_seed(100 * step + dist.get_rank()))
            ddp.zero_grad()
            ddp(inputs).backward()
            ours = average(inputs, key="x")
            assert torch.equal(ours, ddp.module.weight.grad), step
        assert 0 < ours.count_nonzero() < 40
        check_same_everywhere(ours)


def test_it_trains_in_fewer_steps_than_with_gradients():
    """At 5 %: with averages of gradients Adam's step is another one."""
    losses = []
    for adam in (ADAM, None):
        torch.manual_seed(5)
        ddp, _ = hooked(Crossed(), SPARSE, {"adam": adam})
        optimizer = (torch.optim.AdamW(ddp.parameters(), lr=0.01, betas=(0.0, 0.95)) if adam is None
                     else oktopk_torch.AdamW(ddp.parameters(), lr=0.01))
        losses.append(sum([move(optimizer, lambda ddp=ddp, step=step: loss_of(ddp, step)) for step in range(120)][-10:]))
        check_same_everywhere(weights_of(ddp))
    assert losses[0] < losses[1], losses


def test_goes_on_to_the_bit_and_on_other_ranks():
    """From a state dict, from a folder, in part, and with the states of other ranks added up; not from one of gradients."""
    torch.manual_seed(4)
    ddp, state = hooked(Crossed(), SPARSE, {"adam": ADAM})
    optimizer = trained(state, ddp, 4)
    saved, weights, of_optimizer = state.state_dict(), copy.deepcopy(ddp.state_dict()), copy.deepcopy(optimizer.state_dict())
    folder = shared_folder()
    state.save(folder)
    trained(state, ddp, 4, optimizer, 4)
    for loads in (lambda each: each.load_state_dict(saved), lambda each: each.load(folder)):
        again, other = hooked(Crossed(), SPARSE, {"adam": ADAM})
        again.load_state_dict(weights)
        loads(other)
        anew = oktopk_torch.AdamW(again.parameters(), lr=1)
        anew.load_state_dict(of_optimizer)
        trained(other, again, 4, anew, 4)
        assert torch.equal(weights_of(again), weights_of(ddp))
        assert torch.equal(bytes_of(other.state_dict()), bytes_of(state.state_dict()))
    dist.barrier()
    if is_last():
        shutil.rmtree(folder)
    plain_ddp, plain = hooked(Crossed(), SPARSE)
    refused("second moments are of other tensors, or damaged", plain.load_state_dict, saved)
    move(torch.optim.SGD(plain_ddp.parameters(), 0.01), lambda: loss_of(plain_ddp, 0))
    refused("second moments are of other tensors, or damaged", state.load_state_dict, plain.state_dict())
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, saved)
    norm = state.residual_norm()
    other.load_state_dict([{**each, "ranks": len(every) + 1} for each in every + [dict(every[0], state={
        f"rank{len(every)}": next(iter(every[0]["state"].values()))})]], other_ranks=True)
    trained(other, again, 1, anew, 8)
    assert norm > 0

    class Larger(Crossed):
        def __init__(self):
            super().__init__()
            self.more = nn.Parameter(torch.ones(3, 2))
            self.middle = nn.Linear(64, 64, bias=False)

        def forward(self, inputs):
            return super().forward(inputs) * self.more.sum()
    larger, of_larger = hooked(Larger(), SPARSE, {"adam": ADAM})
    of_larger.load_state_dict(saved, partial=True)
    trained(of_larger, larger, 2)
    check_same_everywhere(weights_of(larger))


def test_by_key_it_goes_on_to_the_bit_with_shapes():
    found = []
    for resumes in (False, True):
        average = oktopk_torch.averager(None, SPARSE, adam=ADAM)
        for step in range(6):
            if resumes and step == 3:
                saved, average = average.state_dict(), oktopk_torch.averager(None, SPARSE, adam=ADAM)
                average.load_state_dict(saved)
            for key, shape in (("a", (30, 20)), ("b", (50,)), (3, (4, 5, 6)), ("none", (0, 3)), ("one", ())):
                values = torch.randn(shape, generator=torch.Generator().manual_seed(step + 10 * dist.get_rank()))
                found.append(average(values, key=key))
    half = len(found) // 2
    assert all(torch.equal(one, other) for one, other in zip(found[:half], found[half:]))


def test_a_parameter_that_no_rank_has_used_keeps_its_state():
    """Its residual, its second moments and its step."""
    ranks = dist.get_world_size()
    ddp, state = hooked(Optional(), "ok_topk(density=0.3)", {"adam": ADAM}, made=in_small_buckets, find_unused_parameters=True)
    alone, of_alone = hooked(Optional(), "ok_topk(density=0.3)", {"adam": ADAM}, made=in_small_buckets, find_unused_parameters=True)
    for each, skips in ((ddp, True), (alone, False)):
        optimizer = oktopk_torch.AdamW(each.parameters(), lr=0.01)
        for step in range(9):
            used = range(4) if step % 3 == 0 else range(2)
            if step % 3 and not skips:
                continue  # the last two take part in the same steps as with the other model
            optimizer.zero_grad(set_to_none=True)
            each(inputs_of(step, dist.get_rank()), used).backward()
            optimizer.step()
    for number in (2, 3):
        assert torch.allclose(ddp.module.parts[number], alone.module.parts[number], rtol=1e-5), (ranks, number)
    assert not torch.equal(ddp.module.parts[0], alone.module.parts[0])


def test_a_scaled_loss_changes_no_bit_and_infinities_skip_the_step():
    found = []
    for scaled in (False, True):
        torch.manual_seed(6)
        scaler = Scaler(2.0 ** 10)
        ddp, state = hooked(Crossed(), SPARSE, {"adam": ADAM, "grad_scaler": scaler if scaled else None})
        optimizer = oktopk_torch.AdamW(ddp.parameters(), lr=0.01)
        for step in range(5):
            optimizer.zero_grad()
            loss = loss_of(ddp, step)
            if not scaled:
                loss.backward()
                optimizer.step()
                continue
            if step == 2:  # a step more, which is skipped
                before = bytes_of(state.state_dict())
                scaler.scale(loss_of(ddp, 9) * (float("inf") if is_last() else 1)).backward()
                scaler.step(optimizer, step)
                assert torch.equal(bytes_of(state.state_dict()), before)
                optimizer.zero_grad()
                loss = loss_of(ddp, step)
            scaler.scale(loss).backward()
            scaler.step(optimizer, step)
        found.append(weights_of(ddp))
    assert torch.equal(*found)


def test_layouts_of_memory_have_rows_of_their_own():
    """Of channels_last the same sums as of contiguous weights, at density 1: rows are the output channels in both."""
    found = []
    for layout in (torch.contiguous_format, torch.channels_last):
        torch.manual_seed(7)
        ddp, state = hooked(Images().to(memory_format=layout), "ok_topk(density=1)", {"adam": ADAM})
        optimizer = oktopk_torch.AdamW(ddp.parameters(), lr=0.01)
        for step in range(4):
            images = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(10 * step + dist.get_rank()))
            move(optimizer, lambda ddp=ddp, images=images: (ddp(images.to(memory_format=layout)) - 1).square().mean())
        found.append(weights_of(ddp))
        assert state.last_step()["steps"] == 4
    assert torch.allclose(*found, rtol=1e-3, atol=1e-5)


def test_what_does_not_fit_is_refused():
    """Optimizers that divide again, options that contradict each other, and AdamW on averages of gradients."""
    ddp, state = hooked(Crossed(), SPARSE, {"adam": ADAM})
    for divides in (torch.optim.Adam, torch.optim.AdamW, torch.optim.RMSprop):
        if torch.__version__ >= "2":
            loss_of(ddp, 0).backward()
            refused(f"{divides.__name__} divides again: take oktopk_torch.AdamW", divides(ddp.parameters(), 0.01).step)
    if torch.__version__ < "2":  # nobody hears of steps there: the third pass says it, or the fifth
        for passes in (2, 4):
            other, of_other = hooked(Crossed(), SPARSE, {"adam": ADAM})
            divides = torch.optim.Adam(other.parameters(), 0.01)
            for step in range(passes):  # of two with accumulation
                loss_of(other, step).backward()
                if passes == 2 or step > 1:
                    divides.step()
            refused("Adam divides again", move, divides, lambda other=other: loss_of(other, 9))
            del divides, of_other
    trained(state, ddp, 1)
    torch.optim.Adam([nn.Parameter(torch.ones(2))], 0.01).step()  # of nobody
    plain, of_plain = hooked(Crossed(), SPARSE)
    move(torch.optim.AdamW(plain.parameters()), lambda: loss_of(plain, 0))
    assert of_plain.adam is None
    refused("the state of these parameters averages gradients", oktopk_torch.AdamW(plain.parameters()).step)
    moves = oktopk_torch.AdamW(ddp.parameters())
    moves.param_groups[0]["momentum"] = 0.9
    loss_of(ddp, 1).backward()
    refused("has no momentum", moves.step)
    for wrong, said in (({"momentum": 0.9}, "they take no momentum"), ({"adam": 0.999}, "is no pair of numbers"),
                        ({"adam": (1, 1e-8)}, "beta2 = 1.000000 is not in [0, 1)"), ({"adam": (0.9, 0)}, "epsilon = 0.000000"),
                        ({"adam": (0.9, 0.999)}, "betas of Adam"),
                        ({"adam": ADAM if is_last() else None}, "directions"),
                        ({"adam": (0.9, 1e-8) if is_last() else ADAM}, "beta2")):
        words = message_of(oktopk_torch.averager, None, SPARSE, **{"adam": ADAM, **wrong})
        assert said in words, words
    own = dist.new_group(range(dist.get_world_size()))
    refused("adam is not for a node_group", oktopk_torch.state, DistributedDataParallel(Crossed()), SPARSE, node_group=own, adam=ADAM)
    average = oktopk_torch.averager(None, SPARSE, adam=ADAM)
    average(torch.ones(4, 3), key="a")
    bad = torch.ones(4, 3)
    bad[1, 2] = float("nan") if is_last() else 1
    refused(f"rank {dist.get_world_size() - 1}: the value at index 5 is not finite", average, bad, key="a")
    refused("ranks disagree", average, torch.ones((2, 6) if is_last() else (6, 2)), key="b")
    average(torch.ones(4, 3), key="a")


if __name__ == "__main__":
    spawn("adam_cases")
