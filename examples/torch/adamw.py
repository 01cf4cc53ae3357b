# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trains a small causal transformer with AdamW, by dense sums and by sparse sums of directions, on the words of a text, and draws
loss against steps and against seconds. With --link each rank is behind an emulated link of that rate (needs root and iproute2)."""
import argparse
import contextlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter

import oktopk_torch
import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

CONTEXT, WORDS, ADDRESS = 32, 1000, "10.9.0."
DENSE, SPARSE = "dense, torch.optim.AdamW", "sparse, oktopk_torch.AdamW"
COLORS = {DENSE: "#444444", SPARSE: "#d55e00"}


class Transformer(nn.Module):
    def __init__(self, width=64, layers=3):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(CONTEXT, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, "gelu", norm_first=True)
        self.layers, self.norm = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False), nn.LayerNorm(width)
        for each in self.parameters():
            if each.dim() > 1:
                nn.init.normal_(each, 0, 0.02)
        self.register_buffer("mask", torch.full((CONTEXT, CONTEXT), -math.inf).triu(1))

    def forward(self, words):  # of CONTEXT places in batches
        states = self.layers(self.words(words) + self.places.weight.unsqueeze(1), self.mask)
        return (self.norm(states) @ self.words.weight.t()).flatten(0, 1)


def numbers_of(path):
    """The words of a text by their frequency, the rare ones as 0."""
    words = re.findall(r"[^\W\d_][^\W\d_']*|[^\w\s]", path.read_text(encoding="utf-8").lower())
    known = {word: number for number, (word, _) in enumerate(Counter(words).most_common(WORDS - 1), 1)}
    return torch.tensor([known.get(word, 0) for word in words])


def loss_of(ddp, words, step):
    generator = torch.Generator().manual_seed(1000003 * step + dist.get_rank())
    begins = torch.randint(0, len(words) - CONTEXT - 1, (8,), generator=generator)
    windows = words[begins + torch.arange(CONTEXT + 1).unsqueeze(1)]
    return functional.cross_entropy(ddp(windows[:-1]), windows[1:].flatten())


def train(given):
    """What a rank does."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{given.store}", rank=given.rank, world_size=given.ranks)
    words = numbers_of(given.text)
    words = words[:len(words) // given.ranks * given.ranks].view(given.ranks, -1)[given.rank]
    for name in COLORS:
        torch.manual_seed(1)
        ddp = nn.parallel.DistributedDataParallel(Transformer())
        if name == SPARSE:
            oktopk_torch.attach(ddp, given.scheme, adam=(0.95, 1e-8))
            optimizer = oktopk_torch.AdamW(ddp.parameters(), lr=given.lr, weight_decay=0.1)
        else:
            optimizer = torch.optim.AdamW(ddp.parameters(), lr=given.lr, betas=(0.9, 0.95), weight_decay=0.1)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 20))
        seconds, recent = 0.0, []
        for step in range(1, given.steps + 1):
            dist.barrier()
            began = time.perf_counter()
            optimizer.zero_grad()
            loss = loss_of(ddp, words, step)
            loss.backward()
            optimizer.step()
            schedule.step()
            seconds += time.perf_counter() - began
            recent.append(loss.item())
            if step % 20 == 0:
                mean = torch.tensor(sum(recent[-20:]) / 20)
                dist.all_reduce(mean)
                if given.rank == 0:
                    print(json.dumps({"scheme": name, "step": step, "loss": mean.item() / given.ranks, "seconds": seconds}), flush=True)


@contextlib.contextmanager
def links(rate, ranks):
    """What starts a command behind the link of each rank, and its interface: each in a network of its own, on one bridge."""
    def shell(line):
        subprocess.run(line, shell=True, check=True)
    with contextlib.ExitStack() as networks:
        shell("ip link set lo up && ip link add between type bridge && ip link set between up")
        starts = []
        for rank in range(ranks):
            inside = networks.enter_context(subprocess.Popen(["unshare", "--net", "sleep", "infinity"]))
            networks.callback(inside.kill)
            while os.path.samefile("/proc/self/ns/net", f"/proc/{inside.pid}/ns/net"):
                time.sleep(0.01)
            enter = f"nsenter --net=/proc/{inside.pid}/ns/net"
            shell(f"ip link add port{rank} type veth peer name uplink netns {inside.pid} && ip link set port{rank} master between up")
            shell(f"{enter} ip addr add {ADDRESS}{rank + 1}/24 dev uplink && {enter} ip link set uplink up && {enter} ip link set lo up")
            for where, port in ((enter, "uplink"), ("", f"port{rank}")):
                shell(f"{where} tc qdisc add dev {port} root tbf rate {rate} burst 64k latency 200ms")
            starts.append(enter.split())
        yield starts, "uplink"


def draw(rows, given):
    """Loss against steps and against seconds."""
    import matplotlib  # pylint: disable=import-outside-toplevel  # for the picture alone
    matplotlib.use("Agg")
    from matplotlib import pyplot  # pylint: disable=import-outside-toplevel
    figure, panels = pyplot.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for panel, along in zip(panels, ("step", "seconds")):
        for name, color in COLORS.items():
            of = [row for row in rows if row["scheme"] == name]
            panel.plot([row[along] for row in of], [row["loss"] for row in of], color=color, label=name)
        panel.set_xlabel(along if along == "step" else f"seconds, links of {given.link}" if given.link else "seconds, one machine")
    panels[0].set_ylabel("training loss")
    panels[1].legend()
    figure.suptitle(f"{given.ranks} ranks, {given.scheme}, learning rate {given.lr:g}")
    figure.savefig(given.plot, dpi=150, bbox_inches="tight")
    print(f"wrote {given.plot}")


def run(given, starts, interface):
    """Starts the ranks, and shows what rank 0 says as it comes."""
    rows, environment = [], {**os.environ, **({"GLOO_SOCKET_IFNAME": interface} if interface else {})}
    ranks = [subprocess.Popen([*starts[rank], sys.executable, *sys.argv, "--rank", str(rank), "--store", given.store, "--text", given.text],
                              env=environment, text=True, stdout=subprocess.PIPE if rank == 0 else None) for rank in range(given.ranks)]
    for line in ranks[0].stdout:
        rows.append(json.loads(line))
        print("{scheme}: step {step}, loss {loss:.3f}, {seconds:.1f} s".format(**rows[-1]), flush=True)
    if max(each.wait() for each in ranks) != 0:
        sys.exit("a rank has failed")
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheme", default="ok_topk(density=0.01)")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--link", help="rate of the link of each rank, such as 100mbit")
    parser.add_argument("--text", type=pathlib.Path, help="default: the King James Bible, of Debian's bible-kjv and bible-kjv-text")
    parser.add_argument("--plot", default="", help="a picture, by matplotlib")
    for hidden in ("--rank", "--store"):
        parser.add_argument(hidden, type=int if hidden == "--rank" else str, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.rank is not None:
        train(given)
        return
    if given.link and os.environ.get("ADAMW_IN_NAMESPACES") != str(os.getppid()):
        sys.exit(subprocess.run(["unshare", "--mount", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
                                 'ADAMW_IN_NAMESPACES=$$ "$@"; exit $?', "sh", sys.executable, *sys.argv], check=False).returncode)
    with tempfile.TemporaryDirectory() as folder:
        given.store = f"{folder}/store"
        if given.text is None:
            given.text = pathlib.Path(folder) / "text"
            bible = subprocess.run(["bible", "-f", "gen1:1-rev22:21"], capture_output=True, text=True, check=True).stdout
            given.text.write_text("\n".join(line.partition(" ")[2] for line in bible.splitlines()), encoding="utf-8")
        with links(given.link, given.ranks) if given.link else contextlib.nullcontext(([[]] * given.ranks, "")) as (starts, interface):
            rows = run(given, starts, interface)
    last = {row["scheme"]: row for row in rows}
    print(f"at the end: {last[DENSE]['loss']:.3f} by dense sums in {last[DENSE]['seconds']:.0f} s, {last[SPARSE]['loss']:.3f} by sparse "
          f"ones in {last[SPARSE]['seconds']:.0f} s")
    if given.plot:
        draw(rows, given)


if __name__ == "__main__":
    main()
