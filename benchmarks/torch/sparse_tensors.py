# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums of torch.sparse_coo_tensor behind emulated links: oktopk_torch.sparse_sum beside torch.distributed.all_reduce of Gloo, which
gathers the entries of all ranks on each. Tensors are gradients of an embedding of the words of a text, or of pairs of them, hashed to
the rows of a table.

Needs root, iproute2, and oktopk_torch in this Python. Both sum the same tensors by turns; a row has medians of the slowest rank."""

import argparse
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import behind_links


def rank_of(number, asked):
    """What a rank does."""
    import torch  # pylint: disable=import-outside-toplevel  # in the ranks alone
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel

    import oktopk_torch  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    if hasattr(torch.sparse, "check_sparse_tensor_invariants"):
        torch.sparse.check_sparse_tensor_invariants.disable()  # as is usual; newer releases warn unless it is said
    dist.init_process_group("gloo", init_method=f"file://{asked.store}", rank=number, world_size=asked.ranks)
    words = re.findall("[a-z']+", pathlib.Path(asked.text).read_text(encoding="utf-8").lower())
    numbers = {word: i for i, word in enumerate(dict.fromkeys(words))}
    with_next = 40503 if asked.of == "pairs" else 0
    tokens = torch.tensor([(numbers[a] * 2654435761 + numbers[b] * with_next) % asked.rows for a, b in zip(words, words[1:])])
    seconds, entries, summed = {"Gloo": [], "sparse_sum": []}, [], []
    for step in range(asked.steps + 2):
        at = (step * asked.ranks + number) * asked.batch
        batch = tokens[at:at + asked.batch]
        generator = torch.Generator().manual_seed(at)
        weights = torch.randint(-8, 9, (asked.batch, asked.width), generator=generator).float()  # sums are exact in any order
        gradient = torch.sparse_coo_tensor(batch.unsqueeze(0), weights, (asked.rows, asked.width))
        results = {}
        for name in seconds:
            tensor = gradient.clone()
            dist.barrier()
            began = time.perf_counter()
            if name == "Gloo":
                dist.all_reduce(tensor)
            else:
                tensor = oktopk_torch.sparse_sum(tensor)
            taken = torch.tensor(time.perf_counter() - began)
            dist.all_reduce(taken, dist.ReduceOp.MAX)
            seconds[name].append(taken.item())
            results[name] = tensor.coalesce()
        one, other = results.values()
        if not (torch.equal(one.indices(), other.indices()) and torch.equal(one.values(), other.values())):
            sys.exit(f"rank {number}: the sums of step {step} differ")
        entries.append(len(torch.unique(batch)))
        summed.append(len(one.indices()[0]))
    if number == 0:
        theirs, ours = (1e3 * statistics.median(times[2:]) for times in seconds.values())
        print(f"| {asked.ranks} | {asked.rate} | {statistics.median(entries)} | {statistics.median(summed)} | {theirs:.0f} | {ours:.0f} | "
              f"{theirs / ours:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rates", nargs="+", default=["100mbit", "1gbit"], help="of the link of a rank, each way")
    parser.add_argument("--sizes", type=int, nargs="+", default=[4, 8], help="numbers of ranks")
    parser.add_argument("--rows", type=int, default=10**6, help="of the table")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--of", choices=("words", "pairs"), default="words", help="what rows are of")
    parser.add_argument("--batch", type=int, default=8192, help="words of a rank and step")
    parser.add_argument("--steps", type=int, default=9)
    parser.add_argument("--text", help="default: the King James Bible, of Debian's bible-kjv and bible-kjv-text")
    for hidden in ("--rate", "--store"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    for hidden in ("--rank", "--ranks"):
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank is not None:
        rank_of(asked.rank, asked)
        return
    print("| ranks | links | entries of a rank | of the sum | ms: Gloo's all_reduce | sparse_sum | times as fast |\n"
          "|---:|---|---:|---:|---:|---:|---:|", flush=True)
    with tempfile.NamedTemporaryFile() as bible:
        if not asked.text:
            subprocess.run(["bible", "-f", "gen1:1-rev22:21"], stdout=bible, check=True)
        for rate in asked.rates:
            for ranks in asked.sizes:
                behind_links.run(rate, ranks, "--rate", rate, "--ranks", str(ranks), "--text", asked.text or bible.name)


if __name__ == "__main__":
    main()
