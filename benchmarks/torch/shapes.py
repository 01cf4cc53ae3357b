# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of averages over the tensors of GPT-2 (124 million values), without its model, behind emulated links: dense sums, sparse
sums of gradients, and of directions as AdamW takes them, with the statistics that these exchange.

Needs root, iproute2, 10 GiB of memory, and oktopk_torch in this Python. A row has the median of the slowest rank's steps, and the
words that a rank has sent, as shares of the number of values."""

import argparse
import statistics
import time

import behind_links

RANKS, WIDTH, LAYERS = 4, 768, 12
LAYER = [(WIDTH,), (WIDTH,), (WIDTH, 3 * WIDTH), (3 * WIDTH,), (WIDTH, WIDTH), (WIDTH,), (WIDTH,), (WIDTH,), (WIDTH, 4 * WIDTH),
         (4 * WIDTH,), (4 * WIDTH, WIDTH), (WIDTH,)]
SHAPES = [(50257, WIDTH), (1024, WIDTH), *(LAYERS * LAYER), (WIDTH,), (WIDTH,)]


def rank_of(number, asked):
    """What a rank does."""
    import torch  # pylint: disable=import-outside-toplevel  # in the ranks alone
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    import oktopk_torch  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{asked.store}", rank=number, world_size=RANKS)
    given = [torch.randn(shape, generator=torch.Generator().manual_seed(100 * i + number)) for i, shape in enumerate(SHAPES)]
    values = sum(each.numel() for each in given)
    text = f"ok_topk(density={asked.density:g})"

    def measure(name, step, words=None):
        seconds, shares = [], []
        for _ in range(asked.steps + 2):
            tensors = [each.clone() for each in given]
            dist.barrier()
            sent, began = words() if words else 0, time.perf_counter()
            step(tensors)
            taken = torch.tensor(time.perf_counter() - began)
            dist.all_reduce(taken, dist.ReduceOp.MAX)
            seconds.append(taken.item())
            shares.append((words() - sent) / values if words else 0)
        if number == 0:
            print(f"| {name} | {statistics.median(seconds[2:]):.2f} | {f'{statistics.median(shares[2:]):.4f}' if words else ''} |", flush=True)

    if number == 0:
        print(f"| {values} values, {RANKS} ranks, {asked.rate} | seconds a step | words of a rank, of the values |\n|---|---:|---:|")
    measure("dense, torch", lambda tensors: [dist.all_reduce(each) for each in tensors])
    for name, adam in ((text, None), (f"{text}, directions", (0.999, 1e-8))):
        average = oktopk_torch.averager(None, text, adam=adam)

        def step(tensors, average=average):
            for each in [average(tensor, key=str(i), async_op=True) for i, tensor in enumerate(tensors)]:
                each.wait()
        measure(name, step, average.words_sent)
        del average, step


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", default="1gbit", help="of the link of a rank, each way")
    parser.add_argument("--density", type=float, default=0.01)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank is not None:
        rank_of(asked.rank, asked)
        return
    behind_links.run(asked.rate, RANKS)


if __name__ == "__main__":
    main()
