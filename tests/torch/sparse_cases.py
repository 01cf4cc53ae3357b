# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""sparse_cases.py RANKS [CASE...]: cases of check_ddp_hook.py with tensors and gradients that are sparse already, for so many processes.

A case that fails ends all of them."""

import copy
import functools
import shutil

import oktopk_torch
import torch
import torch.distributed as dist
from ddp_cases import (all_gathered, ddp_takes, hooked, in_small_buckets, is_last, message_of, refused, residuals_of, shared_folder,
                       spawn)
from torch import nn
from torch.nn.parallel import DistributedDataParallel

TYPES = (torch.float32, torch.float64, torch.int32, torch.int64, torch.complex64, torch.complex128)
ROWS, WIDTH = 40, 6


def drawn(kind, shape, generator):
    """Whole numbers, whose sums are exact in every type, but for some that are not."""
    values = torch.randint(-50, 50, shape, generator=generator)
    if kind.is_complex:
        return torch.complex(*(each.to(torch.float64) for each in (values, values.flip(0)))).to(kind)
    return values.to(kind)


def given_by(rank, kind, sizes, row, count, step=0):
    """A tensor that is not coalesced: some of its indices are there several times."""
    generator = torch.Generator().manual_seed(1000 * step + rank)
    places = [torch.randint(0, size, (count,), generator=generator) for size in sizes]
    places = torch.stack(places) if places else torch.zeros(0, count, dtype=torch.long)
    return torch.sparse_coo_tensor(places, drawn(kind, (count, *row), generator), (*sizes, *row))


def in_rank_order(parts):
    return functools.reduce(torch.add, parts).coalesce()


def check_is(found, expected):
    assert found.is_coalesced() and found.shape == expected.shape and found.dtype == expected.dtype and found.device == expected.device
    assert found.sparse_dim() == expected.sparse_dim() and torch.equal(found.indices(), expected.indices())
    assert torch.equal(found.values(), expected.values()), (found, expected)


def test_sums_are_those_of_torch():
    """Of every type, with rows of none, one and two dimensions, with one sparse dimension and several, coalesced and not."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    for kind in TYPES:
        for sizes in ((50,), (7, 9), (3, 1, 5)):
            for row in ((), (4,), (2, 3)):
                for step, coalesces in enumerate((False, True)):
                    parts = [given_by(each, kind, sizes, row, 20 + 30 * each, step) for each in range(ranks)]
                    parts = [each.coalesce() for each in parts] if coalesces else parts
                    before = parts[rank].clone()
                    found = oktopk_torch.sparse_sum(parts[rank])
                    check_is(found, in_rank_order(parts))
                    assert torch.equal(parts[rank]._values(), before._values()) and parts[rank].is_coalesced() == coalesces


def test_every_rank_has_the_same_bits():
    """Of values that round, too; within rounding of a sum in double precision."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    parts = [given_by(each, torch.float32, (30,), (5,), 40) for each in range(ranks)]
    parts = [torch.sparse_coo_tensor(each._indices(), each._values() / 7, each.shape) for each in parts]
    found = oktopk_torch.sparse_sum(parts[rank])
    assert all(torch.equal(each, found.values()) for each in all_gathered(found.values()))
    exact = in_rank_order([each.to(torch.float64) for each in parts])
    assert torch.allclose(found.to(torch.float64).to_dense(), exact.to_dense(), rtol=1e-5, atol=1e-5)


def test_ranks_may_have_nothing():
    ranks = dist.get_world_size()
    for sizes, row in (((9,), (3,)), ((4, 5), ()), ((0,), (2,)), ((), ())):
        nothing = torch.sparse_coo_tensor(torch.zeros(len(sizes), 0, dtype=torch.long), torch.zeros(0, *row), (*sizes, *row))
        for have in (range(ranks), [0], [ranks - 1], []):
            parts = [given_by(each, torch.float32, sizes, row, 3) if each in have and 0 not in sizes else nothing for each in range(ranks)]
            check_is(oktopk_torch.sparse_sum(parts[dist.get_rank()]), in_rank_order(parts))


def test_what_tensors_may_be():
    """Those that require a gradient, lie in memory with steps, are conjugated; sums that are 0 stay, and NaN is a value."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    values = torch.arange(12.0).reshape(3, 4).t()
    strided = torch.sparse_coo_tensor(torch.tensor([[0, 5, 5, 2]]), values, (6, 3)).requires_grad_()
    found = oktopk_torch.sparse_sum(strided)
    assert not found.requires_grad and torch.equal(found.to_dense(), ranks * strided.detach().to_dense())
    turned = torch.tensor([1 + 2j, 3 - 1j]).conj()
    found = oktopk_torch.sparse_sum(torch.sparse_coo_tensor(torch.tensor([[1, 0]]), turned, (2,)))
    assert torch.equal(found.values(), ranks * torch.tensor([3 + 1j, 1 - 2j]))
    wide = torch.sparse_coo_tensor(torch.tensor([[9999, rank], [599, 1]]), torch.tensor([1, -1], dtype=torch.int32), (10000, 600))
    found = oktopk_torch.sparse_sum(wide)
    assert found.indices().tolist() == [[*range(ranks), 9999], [1] * ranks + [599]] and found.values().tolist() == [-1] * ranks + [ranks]
    signs = torch.tensor([1.0 if rank == 0 else -1.0 if rank == 1 else 0.0])
    assert oktopk_torch.sparse_sum(torch.sparse_coo_tensor(torch.tensor([[3]]), signs, (5,))).values().tolist() == [0]
    odd = torch.tensor([float("nan" if is_last() else "inf")])
    assert oktopk_torch.sparse_sum(torch.sparse_coo_tensor(torch.tensor([[3]]), odd, (5,))).values().isnan().all()


def test_what_is_wrong_is_an_error_of_all_ranks():
    """It names the rank and what is wrong, and the next sum works."""
    last, ranks = is_last(), dist.get_world_size()
    good = torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.ones(2), (4,))

    def refuses(wrong, *words):
        said = message_of(oktopk_torch.sparse_sum, wrong if last else good)
        assert all(each in said for each in words), said
        assert all(each == said for each in all_gathered(said)), said
        assert oktopk_torch.sparse_sum(good).values().tolist() == [2 * ranks]

    here = f"rank {ranks - 1}: the tensor is "
    refuses(torch.ones(4), here + "dense", "to_sparse(1)", "averager")
    refuses(None, here + "of type NoneType")
    refuses(torch.eye(4).to_sparse_csr(), here + "of layout torch.sparse_csr", "to_sparse_coo")
    for kind in (torch.float16, torch.uint8):
        refuses(good.to(kind), here + f"of type {kind}, expected one of torch.float32")
    if hasattr(torch.sparse, "check_sparse_tensor_invariants"):
        for places, words in (([[4]], "the index at position 0 is not in [0, 4)"), ([[-1]], "position 0"),
                              ([[1], [2]], "an index of dimension 1 that is not in [0, 2)")):
            refuses(torch.sparse_coo_tensor(torch.tensor(places), torch.ones(1), (4, 2)[:len(places)], check_invariants=False), words)
    refuses(torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.long), torch.ones(1), (2 ** 50,)), "memory of this machine")
    refuses(torch.sparse_coo_tensor(torch.zeros(1, 1, dtype=torch.long), torch.ones(1, 0), (4, 0)), "without a value")
    refuses(torch.sparse_coo_tensor(torch.tensor([[1]]), torch.ones(1), (5,)), "the ranks disagree", "shape (4,)", "shape (5,)")
    refuses(good.double(), "the ranks disagree", "torch.float32", "torch.float64")
    refuses(torch.sparse_coo_tensor(torch.tensor([[1]]), torch.ones(1, 2), (4, 2)), "shape (4, 2)")
    six = [torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.long), torch.ones(1), shape) for shape in ((2, 3), (3, 2))]
    refused("shape (2, 3) with 2 sparse dimensions", oktopk_torch.sparse_sum, six[last])
    rows = [torch.sparse_coo_tensor(torch.zeros(each, 1, dtype=torch.long), torch.ones(1, *[3] * (2 - each)), (3, 3)) for each in (1, 2)]
    refused("1 sparse dimension", oktopk_torch.sparse_sum, rows[last])
    if ranks > 1:
        average = oktopk_torch.averager(None, "topk_a(density=1)")
        average(torch.ones(3), key="a")
        said = message_of(*((average, torch.ones(3), "a") if last else (oktopk_torch.sparse_sum, good)))
        assert "the ranks disagree" in said and "sparse_sum" in said, said
        assert torch.equal(average(torch.ones(3), key="a"), torch.ones(3))
    refused("oktopk_torch.sparse_sum adds sparse ones", oktopk_torch.averager(), good, key="a")


def test_sums_come_in_order_beside_averages():
    """Of averages that are under way, and over a group of some ranks."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    average = oktopk_torch.averager(None, "topk_a(density=1)")
    for step in range(20):
        future = average(torch.full((1000,), float(rank)), key="a", async_op=True)
        found = oktopk_torch.sparse_sum(torch.sparse_coo_tensor(torch.tensor([[rank, 5]]), torch.full((2,), step), (ranks + 5,)))
        assert found.to_dense().sum() == 2 * step * ranks
        assert torch.equal(future.wait(), torch.full((1000,), (ranks - 1) / 2))
    some = dist.new_group([0, 1])
    if rank < 2:
        found = oktopk_torch.sparse_sum(torch.sparse_coo_tensor(torch.tensor([[rank]]), torch.ones(1), (2,)), some)
        assert found.values().tolist() == [1, 1]
    else:
        refused("no process group", oktopk_torch.sparse_sum, torch.ones(1), dist.GroupMember.NON_GROUP_MEMBER)
    for length in range(1, 100):  # more kinds than have buffers kept
        found = oktopk_torch.sparse_sum(torch.sparse_coo_tensor(torch.tensor([[length - 1]]), torch.ones(1), (length,)))
        assert found.values().tolist() == [ranks]


class Table(nn.Module):
    """An embedding with sparse gradients, of any kind, and dense layers behind it."""

    def __init__(self, sparse=True, dense=True, kind=nn.EmbeddingBag):
        super().__init__()
        self.table = kind(ROWS, WIDTH, sparse=sparse)
        self.first = nn.Linear(WIDTH, 16) if dense else None
        self.last = nn.Linear(16, 1) if dense else None

    def forward(self, words):
        found = self.table(words)
        return (found if self.first is None else self.last(torch.relu(self.first(found.reshape(-1, WIDTH))))).sum() / 12


def words_of(step, rank, count=6, distinct=True):
    generator = torch.Generator().manual_seed(100 * step + rank)
    drawn_words = torch.randperm(ROWS, generator=generator) if distinct else torch.randint(0, ROWS, (ROWS,), generator=generator)
    return drawn_words[:2 * count].reshape(count, 2)


def weights_of(model):
    return torch.cat([each.detach().flatten() for each in model.parameters()])


def trained(ddp, steps=range(8), words=words_of, rate=0.05, of_table=torch.optim.SparseAdam):
    """Plain DDP's way to train a table: SparseAdam for it beside SGD."""
    module = ddp.module
    tables = of_table([module.table.weight], rate / 10)
    others = [each for each in module.parameters() if each is not module.table.weight]
    optimizers = [tables] + ([torch.optim.SGD(others, rate)] if others else [])
    for step in steps:
        ddp.zero_grad(set_to_none=True)
        (ddp(words(step, dist.get_rank())) - 1).square().backward()
        gradient = module.table.weight.grad
        assert gradient.is_sparse and (gradient.is_coalesced() or ddp.__dict__.get("is_plain")), step
        for each in optimizers:
            each.step()
    return weights_of(ddp)


def made(how=None, scheme="dense", plain=False, made_by=DistributedDataParallel, seed=3, **of_model):
    torch.manual_seed(seed)
    if plain:
        ddp = made_by(Table(**of_model))
        ddp.__dict__["is_plain"] = True
        return ddp
    return hooked(Table(**of_model), scheme, how, made=made_by)


def test_a_table_trains_as_with_plain_ddp():
    """To the bit on two ranks, where a rank has each word once; else within rounding. Buckets of any size and order."""
    for kind in (nn.EmbeddingBag, nn.Embedding):
        for made_by in (DistributedDataParallel, in_small_buckets, functools.partial(DistributedDataParallel, static_graph=True),
                        functools.partial(DistributedDataParallel, gradient_as_bucket_view=True),
                        functools.partial(DistributedDataParallel, find_unused_parameters=True)):
            for distinct in (True, False):
                words = functools.partial(words_of, distinct=distinct)
                plain = trained(made(plain=True, made_by=made_by, kind=kind), words=words)
                ddp, state = made(made_by=made_by, kind=kind)
                ours = trained(ddp, words=words)
                if distinct and dist.get_world_size() == 2:
                    assert torch.equal(ours, plain), (kind, made_by)
                assert torch.allclose(ours, plain, rtol=1e-4, atol=1e-5), (kind, (ours - plain).abs().max())
                assert all(torch.equal(each, ours) for each in all_gathered(ours))
                assert state.last_step()["steps"] == 8 and state.last_step()["values"] == WIDTH * 16 + 16 + 16 + 1
                assert "table.weight" in state.report() and "table.weight" not in state.state_dict()["parameters"]


def test_a_table_that_nobody_touches():
    """A rank whose samples have no words gives nothing; where no rank has any the average is empty."""
    for empty in (lambda rank, step: rank == step % dist.get_world_size(), lambda rank, step: step % 2 == 1, lambda rank, step: rank == 0):
        def words(step, rank, empty=empty):
            return words_of(step, rank)[:0 if empty(rank, step) else 6]
        # SparseAdam of torch 1.13 takes no empty gradient.
        plain, ours = (trained(each, words=words, of_table=torch.optim.SGD) for each in (made(plain=True), made()[0]))
        assert torch.equal(plain, ours) if dist.get_world_size() == 2 else torch.allclose(plain, ours, rtol=1e-4, atol=1e-6)


def test_tables_of_other_types():
    """Double precision is summed as it is, and 16 bits in 32."""
    for kind in (torch.float64, torch.float16, torch.bfloat16):
        if kind == torch.bfloat16 and torch.__version__ < "2" or not ddp_takes(kind):
            continue  # DDP of torch 1.13 does not, and the process group is of no use then
        table, words = nn.Embedding(ROWS, WIDTH, sparse=True).to(kind), words_of(1, dist.get_rank(), distinct=False)
        alone, ddp = copy.deepcopy(table), hooked(nn.Sequential(table))[0]
        for model in (alone, ddp):
            (model(words).sum() * (1 + dist.get_rank())).backward()
        expected = sum(all_gathered(alone.weight.grad.to(torch.float64).to_dense())) / dist.get_world_size()
        assert table.weight.grad.dtype == kind and table.weight.grad.is_coalesced() and expected.any()
        assert torch.allclose(table.weight.grad.to(torch.float64).to_dense(), expected, rtol=0.01 if kind != torch.float64 else 1e-12)


def test_a_table_beside_sparse_averages():
    """Dense layers with residuals learn beside it, with momentum and a schedule; a model that is a table alone, too."""
    for how in ({}, {"momentum": 0.5}, {"density": oktopk_torch.density_schedule(0.1, warm_up=4)}, {"residual_decay": 0.9}):
        ddp, state = made(how, "ok_topk(density=0.1)")
        losses = []
        for step in range(30):
            trained(ddp, [step])
            losses.append(float(ddp(words_of(0, 0)).detach()) ** 2)
        assert state.last_step()["steps"] == 30 and state.residual_norm() > 0
        assert all(torch.equal(each, weights_of(ddp)) for each in all_gathered(weights_of(ddp)))
    for seed in range(2):
        ddp, state = made(scheme="ok_topk", dense=False, seed=seed)
        ours, plain = trained(ddp), trained(made(plain=True, dense=False, seed=seed))
        assert torch.allclose(ours, plain, rtol=1e-4, atol=1e-5) and torch.equal(ours, plain) >= (dist.get_world_size() == 2)
        state.undo()
        state.load_state_dict(state.state_dict())
        trained(ddp)


def test_it_goes_on_to_the_bit():
    """From a state dict and a folder, and after a step that was taken back."""
    ddp, state = made(scheme="ok_topk(density=0.1)")
    trained(ddp, range(4))
    saved, weights = state.state_dict(), copy.deepcopy(ddp.state_dict())
    folder = shared_folder()
    state.save(folder)
    for loads in (lambda each: each.load_state_dict(saved), lambda each: each.load(folder)):
        for made_by in (DistributedDataParallel, in_small_buckets):
            ddp.load_state_dict(weights)
            state.load_state_dict(saved)
            expected = trained(ddp, range(4, 8))
            again, other = made(scheme="ok_topk(density=0.1)", seed=9, made_by=made_by)
            again.load_state_dict(weights)
            loads(other)
            found = trained(again, range(4, 8))
            assert all(torch.equal(each, found) for each in all_gathered(found))
            assert made_by is in_small_buckets or torch.equal(found, expected)  # whose later selections are others
    dist.barrier()
    if is_last():
        shutil.rmtree(folder)
    before = residuals_of(state)
    ddp(words_of(9, dist.get_rank())).backward()
    state.undo()
    assert torch.equal(residuals_of(state), before)
    other = made(scheme="ok_topk(density=0.1)", sparse=False)[1]
    refused("do not fit: ['table.weight']", other.load_state_dict, saved)


def test_what_fails_takes_the_step_back():
    """A gradient that is not finite is an Error on all ranks that names it, of the table or of others; and then the next pass works."""
    for place in ("table", "last"):
        for made_by in (DistributedDataParallel, in_small_buckets):
            ddp, state = made(scheme="ok_topk(density=0.1)", made_by=made_by)
            trained(ddp, range(3))
            before, weights = residuals_of(state), weights_of(ddp)
            of = getattr(ddp.module, place).weight
            if is_last():
                handle = of.register_hook(lambda gradient: gradient * float("inf"))
            ddp.zero_grad(set_to_none=True)
            said = message_of((1 + ddp(words_of(4, dist.get_rank()))).backward)
            assert "not finite" in said and (place == "last" or "table.weight" in said), said
            assert torch.equal(residuals_of(state), before) and torch.equal(weights_of(ddp), weights)
            if is_last():
                handle.remove()
            trained(ddp, range(4, 6))
            assert state.last_step()["was_skipped"] == 0 and not torch.equal(weights_of(ddp), weights)


def test_ranks_that_join_early():
    """A rank without inputs brings nothing, and takes part in what fails."""
    for fails in (False, True):
        ddp, state = made(scheme="ok_topk(density=0.1)")
        trained(ddp, range(3))

        def backward(step, ddp=ddp):
            ddp.zero_grad(set_to_none=True)
            ddp(words_of(step, dist.get_rank())).backward()

        def passes(ddp=ddp, state=state, fails=fails):
            with ddp.join():
                backward(3)
                if is_last():
                    backward(4)
                    before = residuals_of(state)
                    if fails:
                        ddp.module.table.weight.register_hook(lambda gradient: gradient * float("nan"))
                        try:
                            backward(5)
                        finally:
                            assert torch.equal(residuals_of(state), before)
        try:
            passes()
        except RuntimeError as error:  # an Error, which DDP passes on for the ranks that have joined
            assert fails and "table.weight" in str(error), error
        else:
            assert not fails
        assert all_gathered(state.last_step()["steps"]) == [5 + fails] * dist.get_world_size()
        assert oktopk_torch.sparse_sum(torch.sparse_coo_tensor(torch.tensor([[0]]), torch.ones(1), (1,))).values() == dist.get_world_size()


def test_several_passes_add_up():
    """Within no_sync, and without zero_grad, as with plain DDP."""
    found = []
    for plain in (True, False):
        ddp = made(plain=plain)
        ddp = ddp if plain else ddp[0]
        trained(ddp, range(2))
        with ddp.no_sync():
            ddp(words_of(5, dist.get_rank())).backward()
        for step in (6, 7):
            ddp(words_of(step, dist.get_rank())).backward()
        found.append(torch.cat([each.grad.to_dense().flatten() for each in ddp.module.parameters()]))
    assert torch.allclose(*found, rtol=1e-4, atol=1e-6), (found[0] - found[1]).abs().max()


def test_what_is_not_for_tables_is_refused_by_name():
    """When the state is made, on every rank."""
    own = dist.new_group(range(dist.get_world_size()))
    for what, value in {"adam": (0.95, 1e-8), "clip_norm": 1.0, "node_group": own, "grad_scaler": object(), "skip_step_on_fault": True}.items():
        for rank_of_others in (True, False):
            model = DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.EmbeddingBag(5, 4, sparse=True)))
            said = message_of(oktopk_torch.state, model, **{what: value}) if rank_of_others else said
            assert f"{what} is not for a sparse gradient, as that of 1.weight" in said, said
    frozen = Table()
    frozen.table.weight.requires_grad_(False)
    oktopk_torch.state(DistributedDataParallel(frozen), clip_norm=1.0)
    late = Table()
    state = oktopk_torch.state(late, "ok_topk(density=0.1)")  # before DDP, which then reduces fewer
    late.last.weight.requires_grad_(False)
    ddp = DistributedDataParallel(late)
    ddp.register_comm_hook(state, oktopk_torch.hook)
    for step in range(3):
        refused("make the state of the DDP module, anew", ddp(words_of(step, dist.get_rank())).backward)


if __name__ == "__main__":
    spawn("sparse_cases")
