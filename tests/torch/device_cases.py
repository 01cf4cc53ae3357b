# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""device_cases.py FILE RANKS [CASE...]: the cases of check_devices.py for so many processes, with the pretended device in FILE.

A case that fails ends all of them. What runs on the device must give the bits of the CPU, in both orders of lateness."""

import contextlib
import gc
import io
import itertools
import os
import re
import shutil
import sys
import tempfile
import time
import unittest.mock

import pretended_device
import torch
import torch.distributed as dist
from ddp_cases import Optional, all_gathered, bytes_of, in_small_buckets, inputs_of, is_last, message_of, use_of, with_bytes
from oktopk_torch import _devices, _engine
from torch.nn.parallel import DistributedDataParallel

import oktopk_torch

CPU, FIRST, SECOND = "cpu", "pretended:0", "pretended:1"
SCHEME = "ok_topk(density=0.1)"
# What is late, in ms: what the program's streams write, and what ours do. Some missing waits show in one order alone.
ORDERS = ((5, 0), (0, 5))
LATER = ((20, 0), (0, 20))
device = None  # the native module


@contextlib.contextmanager
def late(order):
    device.set_delays(*order)
    try:
        yield
    finally:
        device.set_delays(0, 0)
        for each in (0, 1):
            torch.pretended.synchronize(each)


class Parts(Optional):
    """Gradients that hang on the parameters, so that a wrong one stays."""

    def forward(self, inputs, use):
        return sum((self.parts[i] - inputs[i]).square().sum() for i in use)


def trained(where, steps, *, finds=False, static=False, no_sync=False, view=False, half=False, clips=False, nan_at=(), step_of=None,
            within=False, **options):
    """Weights and the saved state after training on a device, on the host, and what was raised in each step."""
    rank, ranks = dist.get_rank(), dist.get_world_size()
    kind = torch.float16 if half else torch.float32
    model = Parts().to(where, kind)
    ddp = in_small_buckets(model, find_unused_parameters=finds, static_graph=static, gradient_as_bucket_view=view)
    if within:  # nodes of two ranks
        options["node_group"] = [dist.new_group([each, each + 1]) for each in range(0, ranks, 2)][rank // 2]
    state = oktopk_torch.state(ddp, SCHEME, clip_norm=30.0 if clips else 0.0, **options)
    ddp.register_comm_hook(state, oktopk_torch.hook)
    raised = []
    for step in range(steps):
        uses = [0, 1, 3] if static else use_of(step, rank) if finds else list(range(4))
        given = inputs_of(step, rank)
        given[0, 7] = torch.nan if step in nan_at and is_last() else given[0, 7]
        given = given.to(where, kind)
        if step_of is not None:
            step_of(ddp, state, lambda given=given, uses=uses: ddp(given, uses))
            continue
        ddp.zero_grad(set_to_none=True)
        try:
            if no_sync and step > 1 and step % 2 == 0:
                with ddp.no_sync():
                    ddp(given, uses).backward()
            ddp(given, uses).backward()
        except oktopk_torch.Error as error:
            raised.append((step, str(error)))
            continue
        if clips:
            torch.nn.utils.clip_grad_norm_(ddp.parameters(), 50.0, foreach=False)
        with torch.no_grad():
            for each in model.parts:
                if each.grad is not None:
                    each.sub_(each.grad, alpha=0.01)
    assert ranks == 1 or state.last_step()["words"] > 0 or (within and ranks == 2)
    return torch.cat([each.detach().cpu() for each in model.parts]), bytes_of(state.state_dict()), raised


def averaged(where, *, sums=torch.float32, kinds=(torch.float32, torch.float16, torch.bfloat16), there=False):
    """Averages of tensors that a kernel has written, on the host: one at a time, and several at once. Also of what lies in another
    order, of negatives that are not resolved, and of inference tensors. `there`: by the engine of the device, where one is."""
    average, found = oktopk_torch.averager(None, SCHEME, dtype=sums, device=where if there else None), []

    def fresh(kind, number):
        drawn = torch.randn(30, 50, generator=torch.Generator().manual_seed(100 * number + dist.get_rank())).to(where, kind)
        return drawn.mul_(2)
    for step in range(3):
        tensors = {f"{kind}.{i}": fresh(kind, 10 * step + i) for kind in kinds for i in range(2)}
        tensors["transposed"] = fresh(kinds[0], 50 + step).t()
        complexes = torch.complex(fresh(torch.float32, 60 + step), fresh(torch.float32, 70 + step))
        tensors["negative"] = complexes.conj().imag
        with torch.inference_mode():
            tensors["inference"] = fresh(kinds[0], 80 + step)
        if step == 1:
            futures = [average(each, key=key, async_op=True) for key, each in tensors.items()]
            found += [each.wait().cpu() for each in futures]
        else:
            found += [average(each, key=key).cpu() for key, each in tensors.items()]
    return [each.float() for each in found] + [bytes_of(average.state_dict())]


def looped(where, is_async=False):
    """A loop of its own with AdamW, whose gradients are averaged one by one."""
    model = Parts().to(where)
    optimizer = torch.optim.AdamW(model.parameters(), 0.01, foreach=False)
    average = oktopk_torch.averager(None, SCHEME)
    for step in range(10):
        optimizer.zero_grad()
        model(inputs_of(step, dist.get_rank()).to(where), range(4)).backward()
        futures = [average(each.grad, key=name, async_op=is_async) for name, each in model.named_parameters()]
        for each in futures if is_async else ():
            each.wait()
        optimizer.step()
    return [each.detach().cpu() for each in model.parts] + [bytes_of(average.state_dict())]


def same(found, expected):
    return all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


def check(run, *arguments, orders=ORDERS, where=FIRST, **options):
    """The bits of the CPU in both orders; gives what it found there."""
    expected = run(CPU, *arguments, **options)
    for order in orders:
        with late(order):
            found = run(where, *arguments, **options)
        assert same([each for each in found if isinstance(each, torch.Tensor)],
                    [each for each in expected if isinstance(each, torch.Tensor)]), (run.__name__, order, arguments, options)
        assert [each for each in found if not isinstance(each, torch.Tensor)] == \
            [each for each in expected if not isinstance(each, torch.Tensor)], (order, found, expected)
    return expected


def test_the_device_is_late():
    """What is read without a wait is not there yet, fresh and freed memory is NaN, and its kernels are those of the CPU."""
    with late((0, 50)):
        values, room = torch.ones(8, device=FIRST).mul_(3), torch.empty(8, pin_memory=True)
        assert room.isnan().all() and room.is_pinned() and torch.empty(8, device=FIRST).cpu().isnan().all()
        torch.pretended.synchronize(0)
        own = torch.Stream(FIRST)
        with own:
            room.copy_(values, non_blocking=True)
            there = own.record_event()
        assert room.isnan().all() and not there.query()
        there.synchronize()
        assert room.eq(3).all() and there.query()
        assert values.cpu().eq(3).all()
    assert torch.accelerator.current_accelerator() == torch.device("pretended")


def test_pairs_of_options_have_the_bits_of_the_cpu():
    """Every pair of find_unused_parameters, static_graph, no_sync, gradient_as_bucket_view, float16 and clipping is on, off, and one
    of both, for 200 steps."""
    names = ("finds", "static", "no_sync", "view", "half", "clips")
    columns = list(itertools.combinations(range(5), 3))[:6]
    for row in range(6):  # a covering array: the last row has no option
        began = time.monotonic()
        check(trained, 200, orders=((1, 0), (0, 1)), **{name: row in column for name, column in zip(names, columns)})
        if dist.get_rank() == 0:
            print(f"  row {row}: {time.monotonic() - began:.1f} s", flush=True)


def test_ddp_has_the_bits_of_the_cpu_when_much_is_late():
    check(trained, 4, orders=LATER)
    check(trained, 4, where=SECOND, momentum=0.9)


def test_nodes_have_the_bits_of_the_cpu():
    """Sums within a node are late as those of NCCL: the current stream waits for them."""
    if dist.get_world_size() % 2 == 0:
        check(trained, 6, within=True, finds=True, nan_at=(4,))
        check(trained, 6, within=True, half=True, clips=True, no_sync=True)
        check(trained, 4, within=True, orders=LATER, momentum=0.9)
        check(trained, 4, within=True, where=SECOND, static=True, view=True)


def test_averager_takes_tensors_of_a_device():
    check(averaged)
    check(averaged, where=SECOND, sums=torch.float64, kinds=(torch.float64, torch.float32))
    check(looped)
    check(looped, is_async=True)


def test_devices_and_streams_of_the_program():
    """Tensors of two devices and of the host in one step, from streams of the program, and a future's callback."""
    ranks = dist.get_world_size()
    for order in ORDERS:
        with late(order):
            average, futures, seen = oktopk_torch.averager(None, "topk_a(density=1)"), [], []
            for number, where in enumerate((FIRST, CPU, SECOND, CPU, FIRST)):
                with torch.Stream(where) if where != CPU else contextlib.nullcontext():
                    tensor = torch.zeros(100, device=where).add_(number + dist.get_rank())
                    futures.append(average(tensor, key=number, async_op=True))
            # What it gives its own future lies behind the average on the device, too.
            doubled = futures[0].then(lambda future: seen.append(True) or future.value() * 2)
            for number, future in enumerate(futures):
                expected = number + (ranks - 1) / 2
                assert future.wait().cpu().eq(expected).all(), (order, number)
            assert doubled.wait().cpu().eq(ranks - 1).all() and seen == [True]


def leaves_out(what):
    """_devices without one of its waits."""
    def fetch(self, tensor, room):
        with self.current():
            room.copy_(tensor, non_blocking=True)
    return {"": contextlib.nullcontext(),
            "event": unittest.mock.patch.object(_devices, "wait_for", lambda event: None),
            "wait of the host": unittest.mock.patch.object(_devices.Streams, "fetch", fetch),
            "devices": unittest.mock.patch.object(_devices, "of_future", lambda tensor: None),
            "hold": unittest.mock.patch.object(_devices.Streams, "hold", lambda self, tensor: None)}[what]


lengths = itertools.count(1001)  # so that no other memory fits


def freed(_):
    """Memory that the program lets go while its average is on its way, and takes again."""
    average, length = oktopk_torch.averager(None, "topk_a(density=1)"), next(lengths)
    average(torch.ones(10, device=FIRST), key="before")  # it is held until the next call
    torch.pretended.synchronize(0)
    tensor = torch.ones(length, device=FIRST).mul_(3)
    at = tensor.data_ptr()
    future = average(tensor, key="a", async_op=True)
    while not future.done():
        time.sleep(0.001)
    del tensor, future
    left_out, end, taken = _devices.Streams.hold.__name__ == "<lambda>", time.monotonic() + 30, []
    while not taken or (left_out and at not in [each.data_ptr() for each in taken] and time.monotonic() < end):
        time.sleep(0.05)  # the engine's thread lets it go, too
        torch.accelerator.current_stream(0).synchronize()  # it may go to another tensor now
        taken += [torch.full((length,), 5.0, device=FIRST) for _ in range(4)]
    assert not left_out or at in [each.data_ptr() for each in taken]
    torch.pretended.synchronize(0)
    return [each.cpu()[:1000] for each in taken[-4:]]


def test_each_wait_is_needed():
    """Without one of them, values or errors are others, in one order at least."""
    expected = {trained: trained(CPU, 3), averaged: averaged(CPU), freed: [torch.full((1000,), 5.0)] * 4}

    def is_noticed(run, order):
        with late(order if run is not freed else [10 * each for each in order]):
            try:
                found = run(FIRST, 3) if run is trained else run(FIRST)
                wrong = [] if run is not trained else found[2]
                tensors = found[:2] if run is trained else found
                wrong = wrong or ([] if same(tensors, expected[run][:2] if run is trained else expected[run]) else ["other values"])
            except oktopk_torch.Error as error:
                wrong = [(0, str(error))]
        return [each for every in all_gathered(wrong) for each in every]

    for what, by, noticed in (("", trained, (False, False)), ("", averaged, (False, False)), ("", freed, (False, False)),
                              ("event", trained, (True, None)), ("event", averaged, (True, None)),
                              ("wait of the host", trained, (None, True)), ("wait of the host", averaged, (None, True)),
                              ("devices", trained, (None, True)), ("devices", averaged, (None, True)),
                              ("hold", freed, (None, True))):
        for order, is_to_be in zip(LATER, noticed):
            for times in (1, 5, 25) if is_to_be else (1,):  # a busy host may be later than the device
                with leaves_out(what):
                    said = is_noticed(by, [times * each for each in order])
                if said:
                    break
            if dist.get_rank() == 0:
                print(f"  without {what or 'nothing'}, {by.__name__}, {order}:", *(said[:1] or ["as on the CPU"]), flush=True)
            assert is_to_be is None or is_to_be == bool(said), (what, by.__name__, order, said)


def test_values_cross_the_bus_as_they_are():
    """Once each way, in the type that they have, also where a bucket is late."""
    average = oktopk_torch.averager(None, SCHEME)
    for kind in (torch.float32, torch.float16, torch.bfloat16):
        tensor = torch.ones(1000, device=FIRST, dtype=kind)
        before = device.copied()
        average(tensor, key=str(kind))
        assert [after - was for was, after in zip(before, device.copied())] == [1000 * kind.itemsize] * 2, kind

    moved = []

    def step_of(ddp, _, loss):
        loss = loss()
        before = device.copied()
        loss.backward()
        moved.append([after - was for was, after in zip(before, device.copied())])
    for half in (False, True):
        for order in ((0, 0), *ORDERS):
            with late(order):
                trained(FIRST, 3, half=half, step_of=step_of)
    assert moved == [[4 * 40 * size] * 2 for size in (4, 2) for _ in range(9)], moved


def test_without_streams_events_or_pinned_memory():
    """A device without them takes copies that wait, and the bits are the same."""
    for has in ((False, True, True), (True, False, True), (True, True, False)):
        gc.collect()
        before = device.pinned_bytes()
        device.set_has(*has)
        _devices._streams.clear()
        try:
            check(trained, 6)
            check(trained, 6, nan_at=(2,), skip_step_on_fault=True)
            check(averaged)
            assert _devices.streams_of(torch.device(FIRST)) is None and device.pinned_bytes() <= before, has
            average = oktopk_torch.averager(None, SCHEME)
            average(torch.ones(100, device=FIRST), key="a")
            assert "pinned" not in average.report()
        finally:
            device.set_has(True, True, True)
            _devices._streams.clear()


def test_by_the_names_of_torch_cuda():
    """Those that releases before 2.6 have, here with what stands behind the names of 2.6."""
    of_cuda = {"Event": lambda blocking: torch.Event("pretended", blocking=blocking), "Stream": torch.Stream,
               "current_stream": torch.accelerator.current_stream, "stream": contextlib.nullcontext}

    @contextlib.contextmanager
    def stream(one):
        with one:
            yield
    with unittest.mock.patch.multiple(torch.cuda, **{**of_cuda, "stream": stream}), \
            unittest.mock.patch.object(_devices, "_Accelerator", _devices._Cuda):
        _devices._streams.clear()
        check(trained, 4)
        assert type(_devices.streams_of(torch.device(FIRST))._names) is _devices._Cuda
    _devices._streams.clear()


class Scaler(torch.amp.GradScaler):
    """Counts who asks for the scale, a wait for the device."""
    asked = 0

    def get_scale(self):
        self.asked += 1
        return super().get_scale()


def test_the_scale_is_read_once_a_step():
    """And a step whose gradients are not finite on one rank is skipped on all."""
    def scaled(where, steps):
        scaler = Scaler(torch.device(where).type, init_scale=2.0 ** 12, growth_interval=3)
        optimizers, scales = [], []

        def step_of(ddp, state, loss):
            if not optimizers:
                optimizers.append(torch.optim.SGD(ddp.parameters(), 0.01, foreach=False))
            optimizers[0].zero_grad()
            asked = scaler.asked
            scaler.scale(loss()).backward()
            assert scaler.asked == asked + 1
            scaler.step(optimizers[0])
            scaler.update()
            scales.append((scaler.get_scale(), state.last_step()["was_skipped"]))
        return (*trained(where, steps, nan_at=(4,), step_of=step_of, grad_scaler=scaler), scales)
    *_, scales = check(scaled, 9)
    assert [skipped for _, skipped in scales] == [step == 4 for step in range(9)] and scales[4][0] < scales[3][0]


def test_states_load_from_any_device():
    """A state that was saved beside tensors of a device, or is loaded onto one, goes on to the bit."""
    for where in (CPU, FIRST, SECOND):
        found = []
        for saves in (False, True):
            average = oktopk_torch.averager(None, SCHEME)
            for step in range(6):
                if saves and step == 3:
                    file = io.BytesIO()
                    average.set_density(0.2)
                    torch.save(average.state_dict(), file)
                    file.seek(0)
                    average = oktopk_torch.averager(None, SCHEME)
                    saved = torch.load(file, map_location=where)
                    assert bytes_of(saved).device == torch.device(where)
                    average.load_state_dict(saved)
                elif step == 3:
                    average.set_density(0.2)
                tensor = torch.randn(200, generator=torch.Generator().manual_seed(step + 10 * dist.get_rank())).to(FIRST)
                found.append(average(tensor, key="a").cpu())
        assert same(found[:6], found[6:]), where
    saved = average.state_dict()
    if is_last():
        saved = with_bytes(saved, bytes_of(saved).to("meta"))
    said = message_of(average.load_state_dict, saved)
    assert "it lies on meta, where no values are" in said and len(set(all_gathered(said))) == 1, said
    said = message_of(average.load_state_dict, with_bytes(saved, torch.zeros(40, device=FIRST)))
    assert "holds elements of type Float, expected Byte" in said, said


def test_pinned_memory_is_taken_once_a_bucket():
    """The report tells it; it is let go when DDP builds other buckets, and with the state."""
    gc.collect()
    torch.pretended.synchronize(0)
    at_first, sizes, told = device.pinned_bytes(), [], []

    def step_of(_, state, loss):
        loss().backward()
        sizes.append(device.pinned_bytes() - at_first)
        told.append(int(re.search(r"^  (\d+) bytes of pinned memory$", state.report(), re.M)[1]))
    model_bytes = 4 * 40 * 4
    trained(FIRST, 5, step_of=step_of)
    gc.collect()
    assert told == [model_bytes] * 5, told
    assert sizes == [model_bytes] * 5, sizes
    assert device.pinned_bytes() == at_first

    # One bucket at first, and two later.
    ddp = DistributedDataParallel(Parts(4, 10_000).to(FIRST), bucket_cap_mb=0.05)
    state = oktopk_torch.state(ddp, SCHEME)
    buckets = []

    def hook(carried, bucket):
        buckets.append((bucket.buffer().numel(), device.pinned_bytes() - at_first))
        return oktopk_torch.hook(carried, bucket)
    ddp.register_comm_hook(state, hook)
    for _ in range(3):
        ddp(torch.ones(4, 10_000, device=FIRST), range(4)).backward()
        assert f"  {4 * 40_000} bytes of pinned memory" in state.report(), state.report()
        assert device.pinned_bytes() - at_first == 4 * 40_000
    lengths = [length for length, _ in buckets]
    assert lengths[0] == 40_000 and len(lengths) > 4, lengths

    # A step that fails keeps no more of it.
    average = oktopk_torch.averager(None, SCHEME)
    for _ in range(4):
        message_of(average, torch.ones(10, device=FIRST).mul_(torch.nan), key="a")
    assert "  40 bytes of pinned memory" in average.report(), average.report()


def test_a_fault_is_one_of_every_rank():
    """With the words of the CPU, and nobody waits; what comes later is as there."""
    def faulty(where):
        average, said = oktopk_torch.averager(None, SCHEME), []
        faults = {"not finite": torch.ones(50, device=where).mul_(torch.inf), "sparse": torch.eye(5).to_sparse(), "none": None,
                  "meta": torch.ones(50, device="meta"), "long": torch.ones(51, device=where),
                  "integer": torch.ones(50, device=where, dtype=torch.int64), "double": torch.ones(50, device=where).double()}
        good = torch.arange(50.0).to(where)
        averages = [average(good.clone(), key="a").cpu()]
        for fault in faults.values():
            said.append(message_of(average, fault if is_last() else good.clone(), key="a"))
            future = average(fault if is_last() else good.clone(), key="a", async_op=True)
            assert message_of(future.wait) == said[-1]
            averages.append(average(good.clone(), key="a").cpu())
        assert all(each == said for each in all_gathered(said)), said
        return *averages, bytes_of(average.state_dict()), said
    check(faulty, orders=((2, 0), (0, 2)))
    *_, raised = check(trained, 6, nan_at=(2, 3))
    assert [step for step, _ in raised] == [2, 3] and "not finite" in raised[0][1], raised
    check(trained, 6, nan_at=(1, 4), skip_step_on_fault=True)


def test_what_a_device_refuses_later_is_a_fault_of_every_rank():
    average = oktopk_torch.averager(None, SCHEME)
    average(torch.ones(64, device=FIRST), key="a")
    device.set_has(True, True, not is_last())
    said = message_of(average, torch.ones(70_000, device=FIRST), key="b")
    assert "the pretended device pins no memory" in said and len(set(all_gathered(said))) == 1, said
    device.set_has(True, True, True)
    assert average(torch.ones(70_000, device=FIRST), key="b").cpu().max() == 1

    # The way back fails on one rank alone: its future has an error and not the others'.
    with unittest.mock.patch.object(_devices.Streams, "hold", side_effect=RuntimeError("no way back")) if is_last() \
            else contextlib.nullcontext():
        future = average(torch.ones(64, device=FIRST), key="a", async_op=True)
        if is_last():
            assert "the copy of an average: no way back" in message_of(future.wait)
        else:
            future.wait()


def test_copies_of_a_call_overlap_the_sums_of_another():
    """The second call's values come to the host while the first waits for the last rank, and the first average is back on the
    device while the second one waits."""
    store, average = dist.PrefixStore("overlap", dist.distributed_c10d._get_default_store()), oktopk_torch.averager(None, SCHEME)
    tensors = [torch.ones(1000, device=FIRST).mul_(each) for each in (1, 2)]
    torch.pretended.synchronize(0)
    before = device.copied()[0]
    if is_last():
        for key, tensor in enumerate(tensors):
            store.get(f"{key} may come")
            average(tensor, key=key)
        return
    futures = [average(each, key=key, async_op=True) for key, each in enumerate(tensors)]
    end = time.monotonic() + 30
    while device.copied()[0] - before < 8000:  # both are with the engine, and none has come from the last rank
        assert time.monotonic() < end
        time.sleep(0.001)
    assert not any(each.done() for each in futures)
    if dist.get_rank() == 0:
        store.set("0 may come", "")
    futures[0].wait()
    assert futures[0].wait().cpu().max() == 1 and not futures[1].done()
    if dist.get_rank() == 0:
        store.set("1 may come", "")
    assert futures[1].wait().cpu().max() == 2


def test_an_average_does_not_wait_for_gradients_that_are_to_come():
    """It goes back to the device while the program's stream works at the next ones."""
    average = oktopk_torch.averager(None, "topk_a(density=1)")
    average(torch.ones(8, device=FIRST), key="a")
    first, second = torch.ones(8, device=FIRST), torch.ones(8, device=FIRST)
    torch.pretended.synchronize(0)
    with late((3000, 0)):
        one = average(first, key="a", async_op=True)
        torch.zeros(8, device=SECOND)  # is late, and the second values come behind it
        torch.accelerator.current_stream(0).wait_event(torch.accelerator.current_stream(1).record_event())
        other = average(second, key="b", async_op=True)
        began = time.monotonic()
        with torch.Stream(FIRST):
            assert one.wait().cpu().eq(1).all()
        assert time.monotonic() - began < 2 and not other.done()
        torch.pretended.synchronize(1)
        assert other.wait().cpu().eq(1).all()


def test_an_averager_is_made_behind_calls_that_are_late():
    """The values of one rank are still under way from its device, and those of the others are there."""
    average = oktopk_torch.averager(None, "topk_a(density=1)")

    def wait_for(event):
        time.sleep(0.4 if is_last() else 0)
        event.synchronize()
    with unittest.mock.patch.object(_devices, "wait_for", wait_for):
        future = average(torch.ones(100, device=FIRST).mul_(2), key="a", async_op=True)
        time.sleep(0.2)  # the others give it to the engine
        other = oktopk_torch.averager(None, "topk_a(density=1)")
        assert future.wait().cpu().eq(2).all() and other(torch.ones(100), key="b").eq(1).all()


class of_the_device:
    """Within it the pretended device has an engine: one of the host, which is told that it is the device's, and reaches its memory.
    Of another file, so that a handle of one is none of the other."""
    library = None

    def __init__(self, lacks=False):
        if of_the_device.library is None:
            file = os.path.join(run.folder, f"engine of rank {dist.get_rank()}")
            shutil.copy(_engine.PATH, file)
            of_the_device.library = _engine.Library(file)
            self.library.where = "pretended"
            self.library.initialize_on = lambda number: 0
            self.library.list_algorithms = lambda: [name for name in oktopk_torch.algorithms() if name != "automatic"]
        found = (None, "it is not installed") if lacks else (self.library, "")
        self._patch = unittest.mock.patch.object(_devices, "device_engine", lambda: found)

    def __enter__(self):
        self._patch.start()

    def __exit__(self, *_):
        self._patch.stop()


def test_an_engine_of_the_device():
    """The bits of the host, in values and states, and nothing crosses the bus."""
    moved, told = [], set()

    def step_of(_, state, loss):
        loss = loss()
        before = *device.copied(), device.pinned_bytes()
        loss.backward()
        moved.append([now - was for now, was in zip((*device.copied(), device.pinned_bytes()), before)])
        told.add(re.search("^  selection on .*$", state.report(), re.M)[0])

    with of_the_device():
        names = ("finds", "static", "no_sync", "view", "half", "clips")
        columns = list(itertools.combinations(range(5), 3))[:6]
        for row in range(6):
            check(trained, 30, orders=((1, 0), (0, 1)), **{name: row in column for name, column in zip(names, columns)})
        check(trained, 4, orders=LATER, where=SECOND, momentum=0.9)
        check(trained, 6, finds=True, adam=(0.99, 1e-8))
        check(trained, 6, nan_at=(1, 4), skip_step_on_fault=True)
        *_, raised = check(trained, 6, nan_at=(2, 3))
        assert [step for step, _ in raised] == [2, 3], raised
        check(averaged, there=True)
        with late((2, 2)):
            trained(FIRST, 3, step_of=step_of)
        assert moved == [[0, 0, 0]] * 3 and told == {f"  selection on {FIRST}, by the engine of pretended"}, (moved, told)
        with late(LATER[0]), leaves_out("event"):  # it reads before the program has written
            try:
                found = same(trained(FIRST, 3)[:2], trained(CPU, 3)[:2])
            except oktopk_torch.Error:
                found = False
        assert not all(all_gathered(found))

        # From one to the other and back, to the bit.
        found = []
        for places in ((None,) * 6, (None, None, FIRST, FIRST, None, FIRST)):
            average, before = oktopk_torch.averager(None, SCHEME), None
            for step, where in enumerate(places):
                if where != before:
                    saved = average.state_dict()
                    average, before = oktopk_torch.averager(None, SCHEME, device=where), where
                    average.load_state_dict(saved)
                drawn = torch.randn(200, generator=torch.Generator().manual_seed(step + 10 * dist.get_rank()))
                found.append(average(drawn.to(where or CPU), key="a").cpu())
            found.append(bytes_of(average.state_dict()))
        assert same(found[:7], found[7:])

        # What it does not have is averaged on the host, and told.
        for why, options in (("the engine of the device has no automatic", {"scheme": "automatic"}),
                             ("sums are of torch.float64", {"scheme": SCHEME, "dtype": torch.float64})):
            average = oktopk_torch.averager(None, device=FIRST, **options)
            average(torch.ones(100, device=FIRST, dtype=options.get("dtype")), key="a")
            assert f"  selection on the host: {why}" in average.report(), average.report()
        average = oktopk_torch.averager(None, SCHEME, device=FIRST)
        for where in (CPU, SECOND):
            said = message_of(average, torch.ones(100, device=where if is_last() else FIRST), key="a")
            assert f"lies on {where}, and those of this averager on {FIRST}" in said and len(set(all_gathered(said))) == 1, said
        assert "nowhere" in message_of(oktopk_torch.averager, None, SCHEME, device="nowhere" if is_last() else FIRST)
        ddp = DistributedDataParallel(Parts().to(FIRST))
        said = oktopk_torch.state(torch.nn.ModuleList([ddp.module, Parts()]), SCHEME, dist.group.WORLD).report()
        assert f"  selection on the host: the parameters lie on {CPU}, {FIRST}" in said, said

        with unittest.mock.patch.object(torch.cuda, "is_available", lambda: True):
            assert oktopk_torch.build()["device_engine"] == \
                f"pretended, {of_the_device.library.path}: compiled and loaded; run on: nothing"
        assert oktopk_torch.build()["device_engine"] == "none: there is no GPU, by torch.cuda.is_available()"

    with of_the_device(lacks=is_last()):  # all ranks have it, or none averages there
        average = oktopk_torch.averager(None, SCHEME, device=FIRST)
        average(torch.ones(100, device=FIRST), key="a")
        last = dist.get_world_size() - 1
        why = "it is not installed" if is_last() else f"rank {last} has no engine of a device"
        assert f"  selection on the host: {why}" in average.report(), average.report()
    for given, why in (("off", "OKTOPK_DEVICE_ENGINE is off"), ("", "the package oktopk_torch_cuda is not installed"),
                       ("/nowhere/engine.so", "the engine of devices cannot be loaded: /nowhere/engine.so")):
        with unittest.mock.patch.dict(os.environ, {"OKTOPK_DEVICE_ENGINE": given}):
            found, said = _engine.find_device_engine()
            assert found is None and said.startswith(why), said


def test_nodes_with_an_engine_of_the_device():
    """Shares of a node's ranks stay on the device, too, on all ranks or on none."""
    if dist.get_world_size() % 2:
        return
    moved, told = [], set()

    def step_of(_, state, loss):
        loss = loss()
        before = device.pinned_bytes()
        loss.backward()
        moved.append(device.pinned_bytes() - before)
        told.add(re.search("^  selection on .*$", state.report(), re.M)[0])

    with of_the_device():
        check(trained, 6, within=True, finds=True, nan_at=(4,))
        check(trained, 6, within=True, half=True, clips=True, no_sync=True)
        check(trained, 4, within=True, orders=LATER, momentum=0.9)
        check(trained, 4, within=True, where=SECOND, static=True, view=True)
        check(trained, 6, within=True, nan_at=(1, 4), skip_step_on_fault=True)
        trained(FIRST, 3, within=True, step_of=step_of)
        assert moved == [0] * 3 and told == {f"  selection on {FIRST}, by the engine of pretended"}, (moved, told)
    with of_the_device(lacks=is_last()):
        told.clear()
        trained(FIRST, 2, within=True, step_of=step_of)
        last = dist.get_world_size() - 1
        why = "it is not installed" if is_last() else f"rank {last} has no engine of a device"
        assert told == {f"  selection on the host: {why}"}, told


def fully_sharded(where):
    """Parameters of this rank after training in two replicas with FSDP2, or in as many as ranks, and the averager's state."""
    ranks = dist.get_world_size()
    shape = (ranks, 1) if ranks % 2 else (2, ranks // 2)
    mesh = dist.init_device_mesh(torch.device(where).type, shape, mesh_dim_names=("replica", "shard"))
    torch.manual_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(20, 30), torch.nn.ReLU(), torch.nn.Linear(30, 4)).to(where)
    for each in model[0], model:
        torch.distributed.fsdp.fully_shard(each, mesh=mesh["shard"])
    average = oktopk_torch.attach(model, SCHEME, replicas=mesh["replica"].get_group())
    optimizer = torch.optim.SGD(model.parameters(), 0.05, foreach=False)
    for step in range(5):
        inputs = torch.randn(8, 20, generator=torch.Generator().manual_seed(100 * step + dist.get_rank()))
        optimizer.zero_grad()
        model(inputs.to(where)).square().mean().backward()
        optimizer.step()
    assert average.words_sent() > 0
    return [each.to_local().detach().cpu() for each in model.parameters()] + [bytes_of(average.state_dict())]


def test_fsdp2_between_replicas():
    """The hook of FSDP2 is called on a stream of its own, with gradients of a device."""
    check(fully_sharded)
    with of_the_device():
        check(fully_sharded)


def test_group_without_a_backend_of_the_cpu():
    """The last case: it makes another default group."""
    expected = trained(CPU, 6), averaged(CPU)
    rank, ranks = dist.get_rank(), dist.get_world_size()
    dist.barrier()
    dist.destroy_process_group()
    gc.collect()
    dist.init_process_group("pretended:staged", init_method=f"file://{run.folder}/second", rank=rank, world_size=ranks)
    try:
        dist.all_reduce(torch.ones(1))
    except RuntimeError:
        pass
    else:
        raise AssertionError("the group has a backend of the CPU")
    for order in ORDERS:
        with late(order):
            assert same(trained(FIRST, 6)[:2], expected[0][:2]) and same(averaged(FIRST), expected[1]), order


def run(rank, ranks, file, folder, names):
    global device
    torch.set_num_threads(1)
    run.folder, device = folder, pretended_device.start(file)
    dist.init_process_group("cpu:gloo,pretended:staged", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    for name, function in list(globals().items()):
        if name.startswith("test_") and (not names or name in names):
            began = time.monotonic()
            function()
            dist.barrier()
            if rank == 0:
                print(f"{name} {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as store:
        count = int(sys.argv[2])
        torch.multiprocessing.spawn(run, (count, sys.argv[1], store, sys.argv[3:]), count)
