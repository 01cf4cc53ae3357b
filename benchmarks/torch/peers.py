# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""DistributedDataParallel with the hooks that PyTorch ships and with oktopk_torch, for `run.py peers`.

Reads jobs from a file, a line of JSON each, and appends the rows of each finished job to a CSV file. A job is a
training ("train": loss against iterations and words) or a measurement by turns ("time": seconds and words a step of
each scheme). Words are bytes / 4 of the network interface, headers included, the mean of the ranks."""

import argparse
import csv
import gzip
import json
import math
import os
import re
import statistics
import sys
import time
from collections import Counter

import numpy
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

IMAGES = "/usr/share/datasets/fashion-mnist"
PASSAGE = 20  # words of a backward pass of the LSTM
SENTENCE = 64  # words that the masked language model sees at a time
UNKNOWN, MASK = 0, 1


# --- networks: those of train_torch and train_fashion_mnist -----------------------------------------


def vgg16(size):
    """VGG-16 with batch normalisation for 32 x 32 pixels, widths times `size`."""
    layers, channels = [], 1
    for width in (64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0):
        if not width:
            layers.append(nn.MaxPool2d(2))
            continue
        next_channels = round(width * size)
        layers += [nn.Conv2d(channels, next_channels, 3, padding=1, bias=False), nn.BatchNorm2d(next_channels),
                   nn.ReLU(inplace=True)]
        channels = next_channels
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels, 10))


def mlp(size):
    """The network of train_fashion_mnist, on images of 32 x 32 pixels."""
    width = round(1024 * size)
    return nn.Sequential(nn.Flatten(), nn.Linear(1024, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 10))


class Lstm(nn.Module):
    """Embedding, two layers of LSTM, linear layer: foretells the next word."""

    def __init__(self, words, size):
        super().__init__()
        self.embedding = nn.Embedding(words, round(512 * size))
        self.layers = nn.LSTM(round(512 * size), round(1024 * size), 2)
        self.head = nn.Linear(round(1024 * size), words)
        for each in (self.embedding.weight, self.head.weight):
            nn.init.uniform_(each, -0.1, 0.1)

    def forward(self, words, carried=None):
        output, carried = self.layers(self.embedding(words), carried)
        return self.head(output.flatten(0, 1)), tuple(each.detach() for each in carried)


class Bert(nn.Module):
    """Masked language model: four layers of a transformer's encoder."""

    def __init__(self, words, size):
        super().__init__()
        width = round(512 * size / 8) * 8
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(SENTENCE, width)
        self.norm = nn.LayerNorm(width)
        layer = nn.TransformerEncoderLayer(width, 8, 4 * width, 0.1, "gelu")
        self.layers = nn.TransformerEncoder(layer, 4)
        self.head = nn.Linear(width, words)
        for each in self.parameters():
            if each.dim() > 1:
                nn.init.normal_(each, 0, 0.02)

    def forward(self, words):
        places = torch.arange(len(words)).unsqueeze(1)
        return self.head(self.layers(self.norm(self.words(words) + self.places(places))).flatten(0, 1))


class Layer(nn.Module):
    """Layer of a causal transformer, with its norms in front."""

    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.to_heads, self.from_heads = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, words, hidden):
        batch, places, width = words.shape
        queries, keys, values = (each.view(batch, places, 4, -1).transpose(1, 2)
                                 for each in self.to_heads(self.norms[0](words)).split(width, 2))
        weights = (queries @ keys.transpose(2, 3) / math.sqrt(width // 4)).masked_fill(hidden, -1e9).softmax(3)
        words = words + self.from_heads((weights @ values).transpose(1, 2).reshape(batch, places, width))
        return words + self.down(functional.gelu(self.up(self.norms[1](words))))


class Gpt(nn.Module):
    """Causal transformer with learned places: foretells each next word. The embedding is the head as well."""

    def __init__(self, words, width, layers, context):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for each in self.parameters():
            if each.dim() > 1:
                nn.init.normal_(each, 0, 0.02)
        self.hidden = torch.ones(context, context, dtype=torch.bool).triu(1)  # no buffer: Gloo of old releases takes no bool

    def forward(self, words):
        states = self.words(words) + self.places.weight
        for layer in self.layers:
            states = layer(states, self.hidden)
        return (self.norm(states) @ self.words.weight.t()).flatten(0, 1)


# --- data: each rank's examples of an iteration depend on the seed alone ------------------------------


def share(data, rank, ranks):
    """The share of a rank: equal parts, one after the other."""
    size = len(data) // ranks
    return data[rank * size:(rank + 1) * size]


def images(part):
    """Images of 32 x 32 pixels with the mean and the deviation of the training images, and labels."""
    def read(name, header):
        with gzip.open(f"{IMAGES}/{part}-{name}-ubyte.gz") as file:
            return torch.from_numpy(numpy.frombuffer(file.read(), numpy.uint8, offset=header).copy())
    pixels = (read("images-idx3", 16).view(-1, 1, 28, 28).float() / 255 - 0.2860) / 0.3530
    return functional.pad(pixels, (2, 2, 2, 2), value=-0.2860 / 0.3530), read("labels-idx1", 8).long()


def text(path, most):
    """Training and test words of a text as numbers, below `most`; the more frequent a word, the smaller."""
    with open(path, encoding="utf-8") as file:
        words = re.findall(r"[^\W\d_][^\W\d_']*|[^\w\s]", file.read().lower())
    frequent = sorted(Counter(words).items(), key=lambda each: (-each[1], each[0]))
    numbers = {word: number for number, (word, _) in enumerate(frequent[:most - 2], 2)}
    every = torch.tensor([numbers.get(word, UNKNOWN) for word in words])
    cut = len(every) // 20 * 19
    return every[:cut], every[cut:]


class Images:
    """Fashion-MNIST with `vgg16` or `mlp`."""
    data = None

    def __init__(self, job, rank, ranks, _text):
        Images.data = Images.data or (*images("train"), *images("t10k"))
        self.network = {"vgg16": vgg16, "mlp": mlp}[job["workload"]](job["size"])
        self.batch, self.rank, self.ranks = job["batch"], rank, ranks
        self.order = torch.randperm(len(Images.data[1]), generator=torch.Generator().manual_seed(job["seed"]))
        self.test = [share(each[:job["tested"]], rank, ranks) for each in Images.data[2:]]

    def loss(self, module, iteration):
        at = (iteration * self.ranks + self.rank) * self.batch % (len(self.order) - self.batch)
        chosen = self.order[at:at + self.batch]
        return functional.cross_entropy(module(Images.data[0][chosen]), Images.data[1][chosen])

    def scored(self):
        for at in range(0, len(self.test[1]), 100):
            yield self.network(self.test[0][at:at + 100]), self.test[1][at:at + 100]


class NextWords:
    """The next words of passages that go on from iteration to iteration, with `Lstm`."""

    def __init__(self, job, rank, ranks, words):
        self.network = Lstm(job["words"], job["size"])
        columns = [share(each, rank, ranks) for each in words]
        # Another seed begins at another place.
        columns[0] = columns[0].roll(-1009 * job["seed"])
        self.training, self.test = (each[:len(each) // n * n].view(n, -1).t().contiguous()
                                    for each, n in zip(columns, (job["batch"], 20)))
        self.tested, self.carried = job["tested"], None

    def loss(self, module, iteration):
        at = iteration % ((len(self.training) - 1) // PASSAGE) * PASSAGE
        scores, self.carried = module(self.training[at:at + PASSAGE], self.carried if at else None)
        return functional.cross_entropy(scores, self.training[at + 1:at + PASSAGE + 1].flatten())

    def scored(self):
        carried = None
        for at in range(0, min(self.tested, len(self.test) - 1 - PASSAGE), PASSAGE):
            scores, carried = self.network(self.test[at:at + PASSAGE], carried)
            yield scores, self.test[at + 1:at + PASSAGE + 1].flatten()


class MaskedWords:
    """Words of which 15 % are to be foretold: 80 % masked, 10 % another word, 10 % as they are (Devlin et al.)."""

    def __init__(self, job, rank, ranks, words):
        self.network = Bert(job["words"], job["size"])
        self.training, self.test = (share(each, rank, ranks) for each in words)
        self.words, self.batch, self.seed = job["words"], job["batch"], job["seed"] * 1000003 + rank
        self.tested = job["tested"]

    def masked(self, words, generator):
        draw = torch.rand(words.shape, generator=generator)
        others = torch.randint(2, self.words, words.shape, generator=generator)
        given = torch.where(draw < 0.12, torch.full_like(words, MASK), words)
        given = torch.where((draw >= 0.12) & (draw < 0.135), others, given)
        chosen = (draw < 0.15).flatten().nonzero().flatten()
        return given, chosen, words.flatten()[chosen]

    def loss(self, module, iteration):
        generator = torch.Generator().manual_seed(self.seed * 10000019 + iteration)
        begins = torch.randint(0, len(self.training) - SENTENCE, (self.batch,), generator=generator)
        places = torch.arange(SENTENCE).unsqueeze(1) + begins
        given, chosen, targets = self.masked(self.training[places], generator)
        return functional.cross_entropy(module(given)[chosen], targets)

    def scored(self):
        generator = torch.Generator().manual_seed(7)  # the same words are masked each time
        for at in range(self.tested):
            words = self.test[at * SENTENCE * 16:(at + 1) * SENTENCE * 16].view(16, SENTENCE).t()
            given, chosen, targets = self.masked(words, generator)
            yield self.network(given)[chosen], targets


class Windows:
    """The next words of windows that are drawn in each iteration, with `Gpt`."""

    def __init__(self, job, rank, ranks, words):
        self.network = Gpt(job["words"], job["width"], job["layers"], job["context"])
        self.training, self.test = (share(each, rank, ranks) for each in words)
        self.context, self.batch, self.seed = job["context"], job["batch"], job["seed"] * 1000003 + rank
        self.tested = job["tested"]

    def windows(self, words, begins):
        places = begins.unsqueeze(1) + torch.arange(self.context + 1)
        return words[places[:, :-1]], words[places[:, 1:]].flatten()

    def loss(self, module, iteration):
        generator = torch.Generator().manual_seed(self.seed * 10000019 + iteration)
        begins = torch.randint(0, len(self.training) - self.context - 1, (self.batch,), generator=generator)
        given, targets = self.windows(self.training, begins)
        return functional.cross_entropy(module(given), targets)

    def scored(self):
        for begins in torch.linspace(0, len(self.test) - self.context - 2, self.tested).long().split(16):
            given, targets = self.windows(self.test, begins)
            yield self.network(given), targets


WORKLOADS = {"vgg16": Images, "mlp": Images, "lstm": NextWords, "lstm_adamw": NextWords, "bert": MaskedWords,
             "mini": Windows, "gpt": Windows, "mini_long": Windows, "gpt_long": Windows}
WITH_MOMENTUM = ("vgg16", "mlp")
WITH_ADAMW = ("bert", "lstm_adamw", "mini", "gpt", "mini_long", "gpt_long")
OF_DIRECTIONS = re.compile(r"adam\((.*)\)")  # averages of directions, and the optimizer that takes them


# --- schemes ------------------------------------------------------------------------------------------


def register(ddp, job):
    """Registers the hook of a scheme; gives the momentum that is left to the optimizer."""
    momentum = 0.9 if job["workload"] in WITH_MOMENTUM else 0
    of_directions = OF_DIRECTIONS.fullmatch(job["scheme"])
    scheme = of_directions[1] if of_directions else job["scheme"]
    adam = (job.get("betas", (0.9, 0.999))[1], 1e-8) if of_directions else None
    powersgd = re.fullmatch(r"powersgd\(rank=(\d+)(?:, start=(\d+))?\)", scheme)
    if scheme == "ddp":
        return momentum
    if scheme in ("fp16", "bf16"):
        ddp.register_comm_hook(None, getattr(default_hooks, f"{scheme}_compress_hook"))
        return momentum
    if powersgd:  # error feedback and warm start are its defaults; a tenth of the iterations is its documented start
        start = int(powersgd[2] or max(2, job["iterations"] // 10))
        state = powerSGD_hook.PowerSGDState(None, int(powersgd[1]), start, orthogonalization_epsilon=1e-8)
        ddp.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
        return momentum
    import oktopk_torch  # pylint: disable=import-outside-toplevel  # the peers alone do without
    if job["density"]:  # of a scheme that selects: momentum and clipping stand before the residual
        name, _, options = scheme.partition("(")
        if "density=" not in options:
            scheme = f"{name}(density={job['density']}" + (f", {options}" if options else ")")
        state = oktopk_torch.state(ddp, scheme, momentum=momentum, clip_norm=job.get("clip", 0), adam=adam)
        ddp.register_comm_hook(state, oktopk_torch.hook)
        return 0
    ddp.register_comm_hook(oktopk_torch.state(ddp, scheme, adam=adam), oktopk_torch.hook)
    return momentum


def optimizer_of(job, trained, momentum):
    """The optimizer, and the schedule of its rate: a warm-up, and a cosine down to a tenth where the job has one."""
    rate, decay = job["learning_rate"], job.get("decay", 0.01)
    if OF_DIRECTIONS.fullmatch(job["scheme"]):
        import oktopk_torch  # pylint: disable=import-outside-toplevel
        made = oktopk_torch.AdamW(trained, rate, weight_decay=decay)
    elif job["workload"] in WITH_ADAMW:
        made = torch.optim.AdamW(trained, rate, betas=tuple(job.get("betas", (0.9, 0.999))), weight_decay=decay)
    else:
        made = torch.optim.SGD(trained, rate, momentum)
    warm, end = job.get("warm", 0), job["iterations"]

    def share_of_rate(iteration):
        early = min(1.0, (iteration + 1) / warm) if warm else 1.0
        return early * (0.55 + 0.45 * math.cos(math.pi * min(iteration / end, 1)) if job.get("cosine") else 1.0)
    return made, torch.optim.lr_scheduler.LambdaLR(made, share_of_rate)


def distributed(network, scheme):
    """The DDP module. PowerSGD has one bucket, for it sums within callbacks: with Gloo two buckets' sums may then begin
    in another order on another rank, and the program ends. The others have DDP's own buckets."""
    if not scheme.startswith("powersgd"):
        return DistributedDataParallel(network)
    first, dist._DEFAULT_FIRST_BUCKET_BYTES = dist._DEFAULT_FIRST_BUCKET_BYTES, 1 << 40
    try:
        return DistributedDataParallel(network, bucket_cap_mb=1 << 20)
    finally:
        dist._DEFAULT_FIRST_BUCKET_BYTES = first


class Training:
    """A network in training with one scheme."""

    def __init__(self, job, ranks, texts):
        self.ranks = ranks
        torch.manual_seed(job["seed"])
        words = job.get("words") and texts(job["words"])
        self.work = WORKLOADS[job["workload"]](job, dist.get_rank(), ranks, words)
        self.ddp = distributed(self.work.network, job["scheme"])
        momentum = register(self.ddp, job)
        self.optimizer, self.schedule = optimizer_of(job, self.ddp.parameters(), momentum)
        self.clip = 0 if job["density"] else job.get("clip", 0)  # a scheme that selects clips each rank's gradient
        torch.manual_seed(job["seed"] * 1009 + dist.get_rank())  # of dropout
        self.iteration = 0

    def parameters(self):
        return sum(each.numel() for each in self.ddp.parameters())

    def step(self):
        self.optimizer.zero_grad()
        loss = self.work.loss(self.ddp, self.iteration)
        loss.backward()
        if self.clip:
            nn.utils.clip_grad_norm_(self.ddp.parameters(), self.clip)
        self.optimizer.step()
        self.schedule.step()
        self.iteration += 1
        return loss.item()

    def evaluate(self, loss):
        """The mean of the ranks' training losses; test loss and share of what was right."""
        sums = torch.tensor([loss, 0, 0, 0], dtype=torch.float64)
        self.ddp.eval()
        with torch.no_grad():
            for scores, targets in self.work.scored():
                sums[1] += functional.cross_entropy(scores, targets, reduction="sum").item()
                sums[2] += scores.argmax(1).eq(targets).sum().item()
                sums[3] += len(targets)
        self.ddp.train()
        dist.all_reduce(sums)
        return (sums[0] / self.ranks).item(), (sums[1] / sums[3]).item(), (sums[2] / sums[3]).item()


def sent(interface, ranks):
    """Words that a rank has sent so far by its interface; of the loopback, which all share, the mean."""
    dist.barrier()
    with open("/proc/net/dev", encoding="utf-8") as file:
        count = int(re.search(rf"^\s*{interface}:(.*)", file.read(), re.M)[1].split()[8])
    dist.barrier()
    return count / 4 / (ranks if interface == "lo" else 1)


def mean_of_ranks(value, ranks):
    whole = torch.tensor([value], dtype=torch.float64)
    dist.all_reduce(whole)
    return whole.item() / ranks


def train(job, ranks, interface, texts):
    """The rows of a training: loss against iterations, words and seconds, evaluations not counted."""
    of = Training(job, ranks, texts)
    words, seconds, loss = 0.0, 0.0, 0.0
    while of.iteration < job["iterations"]:
        before, began = sent(interface, ranks), time.monotonic()
        try:
            loss = statistics.fmean(of.step() for _ in range(job["every"]))
        except RuntimeError as fault:  # of oktopk_torch on every rank: a gradient is not finite
            print(f"{job['scheme']} at {job['learning_rate']}: {fault}", file=sys.stderr)
            loss = float("nan")
        seconds += time.monotonic() - began
        words += mean_of_ranks(sent(interface, ranks) - before, ranks)
        figures = of.evaluate(loss)
        yield {"iteration": of.iteration, "seconds": f"{seconds:.3f}", "words": f"{words:.0f}",
               **{name: f"{each:.5f}" for name, each in zip(("loss", "test_loss", "accuracy"), figures)},
               "parameters": of.parameters()}
        if not numpy.isfinite(figures[:2]).all():
            return


def measure(job, ranks, interface, texts):
    """Rows of seconds and words a step: the schemes by turns, each with a new network, after steps not counted."""
    for turn in range(job["rounds"]):
        for scheme, density in job["schemes"]:
            of = Training({**job, "scheme": scheme, "density": density}, ranks, texts)
            for _ in range(job["ahead"]):
                of.step()
            before, times = sent(interface, ranks), []
            for _ in range(job["steps"]):
                began = time.monotonic()
                of.step()
                times.append(time.monotonic() - began)
            words = mean_of_ranks(sent(interface, ranks) - before, ranks) / job["steps"]
            seconds = mean_of_ranks(statistics.median(times), ranks)
            yield {"scheme": scheme, "round": turn, "step_seconds": f"{seconds:.5f}", "words": f"{words:.0f}",
                   "parameters": of.parameters()}


def work(rank, ranks, given):
    """What one rank does."""
    torch.set_num_threads(1)
    # All ranks share few cores, and Gloo's thread polls in vain while the thread that holds its lock does not run: no
    # thread that wakes up takes the core of another one. (A sum of ok_topk takes a sixteenth of the time so.)
    os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    interface = given.interface
    os.environ["GLOO_SOCKET_IFNAME"] = interface
    dist.init_process_group("gloo", init_method=f"file://{given.store}", rank=rank, world_size=ranks)
    cache = {}

    def texts(most):
        cache[most] = cache.get(most) or text(given.text, most)
        return cache[most]

    with open(given.jobs, encoding="utf-8") as file:
        jobs = [json.loads(line) for line in file]
    for number, job in enumerate(jobs, 1):
        began = time.monotonic()
        keys = {"ranks": ranks, **{name: job[name] for name in ("workload", "learning_rate", "seed")}}
        rows = [{"scheme": job.get("scheme"), **keys, **row}
                for row in {"train": train, "time": measure}[job["kind"]](job, ranks, interface, texts)
                if row.get("iteration", math.inf) > job.get("known", 0)]
        if rank:
            continue
        print(f"{number} of {len(jobs)}: {job['workload']} {job.get('scheme', 'by turns')} {job['learning_rate']:g}, "
              f"seed {job['seed']}: {rows[-1].get('test_loss', '')}, {time.monotonic() - began:.1f} s", file=sys.stderr,
              flush=True)
        with open(given.csv, "a", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, rows[0], lineterminator="\n")
            if out.tell() == 0:
                writer.writeheader()
            writer.writerows(rows)
    dist.barrier()


def main():
    """Starts the ranks here, or is one of those that mpirun started."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--interface", default="lo")
    for name in ("--jobs", "--store", "--csv"):
        parser.add_argument(name, required=True)
    parser.add_argument("--text")
    parser.add_argument("--algorithm", help="not used: the jobs name theirs")
    given = parser.parse_args()
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        work(int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"]), given)
    else:
        torch.multiprocessing.start_processes(work, (given.ranks, given), given.ranks, start_method="fork")


if __name__ == "__main__":
    main()
