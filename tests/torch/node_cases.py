# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""node_cases.py NODES RANKS [CASE...]: cases of check_ddp_hook.py for so many nodes of so many ranks: with two ranks those of
ddp_cases.py with states of a node, and some of their own.

A case that fails ends all of them."""

import copy
import shutil
import sys
import tempfile
import unittest.mock

import ddp_cases
import oktopk_torch
import torch
import torch.distributed as dist
from ddp_cases import (REUSED, Crossed, Optional, Training, bytes_of, check_same_everywhere, hooked, in_small_buckets, inputs_of, is_last,
                       loss_of, message_of, of_all_ranks, refused)
from oktopk_torch import _node
from torch import nn
from torch.nn.parallel import DistributedDataParallel

plain_state, plain_carried = oktopk_torch.state, ddp_cases.carried
nodes = None  # process groups
BOTH = ["test_dense_is_what_ddp_does", "test_nothing_is_lost", "test_unused_parameters_lose_nothing", "test_goes_on_to_the_bit",
        "test_a_scaler_sees_infinities_and_skips_the_step",
        "test_a_step_with_a_fault_is_skipped_on_request", "test_a_float64_model_and_a_mixed_one_lose_nothing",
        "test_a_static_graph_leaves_residuals_of_unused_parameters", "test_a_gradient_that_stays_is_not_touched",
        "test_what_ddp_offers_trains", "test_a_distributed_checkpoint_gives_each_rank_its_own",
        "test_densities_follow_a_schedule", "test_ddp_goes_on_behind_an_error", "test_clipping_does_not_see_what_takes_no_part",
        "test_pairs_of_options_hold_for_200_steps"]


def own_node():
    size = dist.get_world_size() // len(nodes)
    return nodes[dist.get_rank() // size]


lengths_of = {}  # of the parameters of all models of a case, by their names


class state_of_node(plain_state):  # pylint: disable=invalid-name  # in its place
    def __init__(self, model, *given, **options):
        super().__init__(model, *given, node_group=own_node(), **options)
        lengths_of.update((name.replace("module.", "", 1), each.numel()) for name, each in model.named_parameters())


def whole(found):
    """Shares of a node as whole tensors, so that the sum over all ranks is that of a rank's own residuals without nodes."""
    share, size, made = own_node().rank(), own_node().size(), {}
    for name, each in found.items():
        full = each.new_zeros(size, each.numel())
        full[share] = size * each
        made[name] = full.flatten()[:lengths_of[name]]
    return made


def carried_of_node(state, *kind):
    return [whole(each) for each in plain_carried(state, *kind)]


def of_node(every):
    """What the ranks of the own node have, of what all ranks have."""
    size = own_node().size()
    return every[dist.get_rank() // size * size:][:size]


def gradients_of(ddp, step, of=lambda loss: loss):
    """Those of this rank alone, as one vector."""
    alone = copy.deepcopy(ddp.module)
    alone.zero_grad()
    of(loss_of(alone, step)).backward()
    return torch.cat([each.grad.flatten() for each in alone.parameters()])


def averages_of(ddp):
    return torch.cat([each.grad.flatten() for each in ddp.parameters()])


def parts_of(vector, ddp):
    """Rows of shares: of each tensor as many parts as a node has ranks, the last of them with zeros behind its values."""
    size, rows = own_node().size(), []
    for each in vector.split([each.numel() for each in ddp.parameters()]):
        part = -(-each.numel() // size)
        rows.append(nn.functional.pad(each, (0, part * size - each.numel())).view(size, part))
    return rows


def same(one, other):
    return all(torch.equal(each, second[name]) for first, second in zip(one, other) for name, each in first.items())


def test_each_share_of_a_node_is_averaged_between_nodes():
    """As averages by key of the same shares are, which this case builds by itself; residuals are those of a share."""
    share, size = own_node().rank(), own_node().size()
    between = [dist.new_group([i + size * node for node in range(len(nodes))]) for i in range(size)]
    for cap in (25.0, 0.01):
        scheme = "topk_a(density=0.1)" if cap > 1 else "topk_a(density=1)"  # whose sums do not hang on the order in a bucket
        average = oktopk_torch.averager(between[share], scheme, momentum=0.9, residual_decay=0.9)
        ddp, state = hooked(Crossed(), scheme, {"node_group": own_node(), "momentum": 0.9, "residual_decay": 0.9}, bucket_cap_mb=cap)
        for step in range(6):
            ddp.zero_grad()
            loss_of(ddp, step).backward()
            mean = sum(of_node(of_all_ranks(gradients_of(ddp, step)))) / size
            rows = parts_of(mean, ddp)
            ours = average(torch.cat([each[share] for each in rows]), key="all")
            found = torch.stack(of_node(of_all_ranks(ours))).split([each.shape[1] for each in rows], 1)
            for each, theirs in zip(found, ddp.parameters()):
                assert torch.allclose(each.flatten()[:theirs.numel()], theirs.grad.flatten(), rtol=1e-4, atol=1e-7), step
            check_same_everywhere(averages_of(ddp))
        assert abs(state.residual_norm() - average.residual_norm()) <= 1e-4 * average.residual_norm()
        assert cap < 1 or state.residual_norm() > 0
        assert sum(state.state_dict()["lengths"]) == ours.numel()


def test_each_rank_clips_its_own_gradient():
    """Before the sum within the node; a part of the ranks does, and buckets before the last know of their own norm alone."""
    ddp, state = hooked(Crossed(), "dense", {"node_group": own_node(), "clip_norm": 1.0})
    for step in range(3):
        ddp.zero_grad()
        (loss_of(ddp, step) * 10 ** -dist.get_rank()).backward()
        own = gradients_of(ddp, step, lambda loss: loss * 10 ** -dist.get_rank())
        norms = of_all_ranks(own.norm())
        assert min(norms) < 1 < max(norms)
        mean = sum(each * min(1, 1 / each.norm()) for each in of_all_ranks(own)) / dist.get_world_size()
        assert torch.allclose(averages_of(ddp), mean, rtol=1e-4, atol=1e-7)
    assert state.residual_norm() == 0
    refused("clip_norm = -1.0 is no norm", plain_state, ddp, "dense", node_group=own_node(), clip_norm=-1.0 if is_last() else 1.0)


def test_a_fault_of_one_share_is_one_of_all():
    """Whichever share has it, in whichever bucket, and also where a gradient does not come at all: no share keeps the step, and an
    error names the value. With `skip_step_on_fault` all ranks skip it."""
    for skips in (False, True):
        for place in (0, -1):
            ddp = in_small_buckets(Optional())
            state = oktopk_torch.state(ddp, "ok_topk(density=0.1)", node_group=own_node(), skip_step_on_fault=skips)
            ddp.register_comm_hook(state, oktopk_torch.hook)
            for step in range(6):
                inputs = inputs_of(step, dist.get_rank())
                before, is_wrong = plain_carried(state), step in (0, 3)
                if is_wrong and is_last():
                    inputs[step, place] = torch.nan
                ddp.zero_grad(set_to_none=True)
                if is_wrong and not skips:
                    said = message_of(ddp(inputs, range(4)).backward)
                    assert f" of parts.{step} (share {own_node().size() - 1 if place else 0} of each node" in said, said
                else:
                    ddp(inputs, range(4)).backward()
                is_skipped = is_wrong and skips
                assert state.last_step()["was_skipped"] == is_skipped
                assert all((each.grad is None) == is_skipped for each in ddp.parameters()) or (is_wrong and not skips)
                assert same(before, plain_carried(state)) == is_wrong, (skips, place, step)
                if is_wrong:
                    state.undo()  # nothing: it was taken back
                elif step == 5:
                    state.undo()
                    assert same(before, plain_carried(state))
                    refused("no step to take back", state.undo)


def test_a_sum_that_does_not_begin_is_a_fault_of_all():
    """In whichever bucket: the others do not wait for it, residuals are as before, and the next step is as ever."""
    fails_now, starts = [], _node.Node.scattered
    for fails in (lambda bucket: bucket.index() == 0, lambda bucket: bucket.is_last()):
        ddp = in_small_buckets(Optional())
        state = oktopk_torch.state(ddp, "ok_topk(density=0.1)", node_group=own_node())

        def hook(carried, bucket, fails=fails):
            fails_now[:] = [step == 3 and fails(bucket)]
            return oktopk_torch.hook(carried, bucket)
        ddp.register_comm_hook(state, hook)

        def scattered(node, rows):
            if fails_now[0]:
                raise RuntimeError("out of memory")
            return starts(node, rows)
        with unittest.mock.patch.object(_node.Node, "scattered", scattered):
            for step in range(5):
                before = plain_carried(state)
                ddp.zero_grad()
                backward = ddp(inputs_of(step, dist.get_rank()), range(4)).backward
                if step == 3:
                    assert "the sum within the node: out of memory" in message_of(backward)
                    assert same(before, plain_carried(state))
                else:
                    backward()
                    check_same_everywhere(averages_of(ddp))
                    assert not same(before, plain_carried(state))


def test_a_parameter_that_the_node_uses_is_used():
    """By one rank of one node, in turn: what no rank uses waits, as without nodes."""
    ddp, state = hooked(Optional(), "topk_a(density=1)", {"node_group": own_node()}, find_unused_parameters=True)
    for step in range(2 * dist.get_world_size()):
        ddp.zero_grad(set_to_none=True)
        uses = [0, 1 + step % 2] if step % dist.get_world_size() == dist.get_rank() else [0]
        ddp(inputs_of(step, dist.get_rank()), uses).backward()
        assert [each.grad is not None for each in ddp.module.parts] == [True, step % 2 == 0, step % 2 == 1, False]
        mean = sum(of_all_ranks(inputs_of(step, dist.get_rank())[1 + step % 2] if len(uses) > 1 else torch.zeros(40)))
        assert torch.allclose(ddp.module.parts[1 + step % 2].grad, mean / dist.get_world_size(), rtol=1e-5)
    assert state.residual_norm() < 1e-4


def test_states_are_those_of_a_share():
    """Saved by all nodes, and loaded by a single node, or by as many of them: nothing is lost. Nodes of other sizes are refused."""
    size = own_node().size()
    training = Training(REUSED, cap=0.01, node_group=own_node()).steps(0, 3)
    every = ddp_cases.all_gathered(training.state.state_dict())
    again = Training(REUSED, cap=0.01, node_group=own_node())
    again.load(training.saved())
    assert torch.equal(again.steps(3, 6).weights(), training.steps(3, 6).weights())
    torch.manual_seed(5)
    alone = DistributedDataParallel(Crossed(), process_group=own_node(), bucket_cap_mb=0.01)
    state = oktopk_torch.state(alone, REUSED, node_group=own_node())
    alone.register_comm_hook(state, oktopk_torch.hook)
    refused("other_ranks=True", state.load_state_dict, every[own_node().rank()])
    state.load_state_dict(every, other_ranks=True)
    held = sum(ddp_cases.residuals_of(each) for each in every[own_node().rank()::size])
    assert torch.allclose(ddp_cases.residuals_of(state) * len(nodes), held, rtol=1e-5, atol=1e-7)
    loss_of(alone, 3).backward()
    folder = ddp_cases.shared_folder()
    training.state.save(folder)
    state.load(folder)
    assert state.residual_norm() > 0
    again.state.load(folder)
    assert torch.equal(bytes_of(again.state.state_dict()), bytes_of(training.state.state_dict()))
    flat = Training(REUSED, cap=0.01)
    for each, other in ((flat.state, training.state), (training.state, flat.state)):
        refused("residuals are of a share of each tensor", each.load_state_dict, other.state_dict())
    dist.barrier()
    if is_last():
        shutil.rmtree(folder)


def test_what_is_no_node_is_refused():
    """On every rank, by name."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    ddp = DistributedDataParallel(Optional())
    alone = [dist.new_group([each]) for each in range(ranks)]
    rest = dist.new_group(range(1, ranks))
    for wrong, said in ((dist.GroupMember.NON_GROUP_MEMBER if is_last() else own_node(), f"rank {ranks - 1}: node_group is "),
                        ("a text", "rank 0: node_group is 'a text'"),
                        (dist.group.WORLD if rank == 0 else own_node(), "each of the"),
                        (alone[0] if rank == 0 else rest, "as many ranks each are needed")):
        refused(said, plain_state, ddp, "dense", node_group=wrong)
    one = plain_state(ddp, "topk_a(density=1)", node_group=dist.group.WORLD)  # a single node
    ddp.register_comm_hook(one, oktopk_torch.hook)
    ddp(inputs_of(0, rank), range(4)).backward()
    assert torch.allclose(ddp.module.parts[0].grad, sum(of_all_ranks(inputs_of(0, rank)[0])) / ranks, rtol=1e-5)
    assert one.words_sent() == 0 and f"dense sums within a node of {ranks} ranks" in one.report()


def run(rank, count, size, folder, names):
    global nodes
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=count * size)
    nodes = [dist.new_group(range(size * i, size * i + size)) for i in range(count)]
    own = [(function, None) for name, function in globals().items() if name.startswith("test_")]
    theirs = [(function, scheme) for name, function in vars(ddp_cases).items() if name in BOTH
              for scheme in (REUSED, *ddp_cases.MORE.get(name, [])) if size == 2]

    for function, scheme in own + theirs:
        if names and function.__name__ not in names:
            continue
        if rank == 0:
            print(function.__name__, *([scheme] if scheme else []), flush=True)
        is_theirs = (function, scheme) in theirs
        oktopk_torch.state = state_of_node if is_theirs else plain_state
        ddp_cases.carried = carried_of_node if is_theirs else plain_carried
        function(*([scheme] if is_theirs else []))
        dist.barrier()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as store:
        of_nodes, of_ranks = map(int, sys.argv[1:3])
        torch.multiprocessing.spawn(run, (of_nodes, of_ranks, store, sys.argv[3:]), of_nodes * of_ranks)
