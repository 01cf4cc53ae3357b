# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A step of DistributedDataParallel on two emulated machines of two ranks: with ok_topk between all ranks, and with node_group,
which sums densely within a machine; without a hook for comparison. Each machine has one link of a chosen rate.

Needs root, iproute2, and oktopk_torch in this Python. Steps of all schemes go by turns; a row has the median of the slowest rank's.
Everything emulated lives in namespaces of its own, which end with the program."""

import argparse
import os
import statistics
import subprocess
import sys
import time

from behind_links import IN_NAMESPACES

RANKS, OF_NODE, ADDRESS = 4, 2, "10.7.0."


def shell(line):
    subprocess.run(line, shell=True, check=True)


def machines(rate):
    """Two of them with a link, the second one beside this process; gives what starts a command on each."""
    with subprocess.Popen(["unshare", "--net", "sleep", "infinity"]) as other:
        while os.path.samefile("/proc/self/ns/net", f"/proc/{other.pid}/ns/net"):
            time.sleep(0.01)
        there = f"nsenter --net=/proc/{other.pid}/ns/net"
        shell(f"ip link add link0 type veth peer name link1 netns {other.pid}")
        for number, where in enumerate(("", there)):
            shell(f"{where} ip addr add {ADDRESS}{number + 1}/24 dev link{number}")
            shell(f"{where} ip link set lo up && {where} ip link set link{number} up")
            shell(f"{where} tc qdisc add dev link{number} root tbf rate {rate} burst 64k latency 200ms")
        yield [], there.split()
        other.kill()


def rank_of(number, asked):
    """What a rank does."""
    import torch  # pylint: disable=import-outside-toplevel  # in the ranks alone
    import torch.distributed as dist  # pylint: disable=import-outside-toplevel
    from torch import nn  # pylint: disable=import-outside-toplevel

    import oktopk_torch  # pylint: disable=import-outside-toplevel
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://{ADDRESS}1:29500", rank=number, world_size=RANKS)
    nodes = [dist.new_group(range(first, first + OF_NODE)) for first in range(0, RANKS, OF_NODE)]

    def trained(scheme, node_group):
        torch.manual_seed(0)
        wide = [layer for _ in range(2) for layer in (nn.Linear(asked.width, asked.width), nn.ReLU())]
        model = nn.Sequential(nn.Linear(256, asked.width), nn.ReLU(), *wide, nn.Linear(asked.width, 10))
        ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=4)
        state = oktopk_torch.attach(ddp, scheme, node_group=node_group) if scheme else None
        return ddp, state, torch.optim.SGD(ddp.parameters(), 0.001), []
    schemes = {"no hook": trained("", None)}
    for density in asked.density:
        text = f"ok_topk(density={density:g})"
        schemes[text] = trained(text, None)
        schemes[f"{text}, node_group"] = trained(text, nodes[number // OF_NODE])
    for step in range(asked.steps + 3):
        for name, (ddp, _, optimizer, times) in schemes.items():
            if name == "no hook" and step >= 6:
                continue
            dist.barrier()
            began = time.perf_counter()
            optimizer.zero_grad()
            ddp(torch.randn(8, 256)).square().mean().backward()
            optimizer.step()
            taken = torch.tensor(time.perf_counter() - began)
            dist.all_reduce(taken, dist.ReduceOp.MAX)
            times.append(taken.item())
    if number == 0:
        print(f"| {sum(each.numel() for each in ddp.parameters())} parameters, {asked.rate} | ms a step | words of a rank | values in its "
              "residual |\n|---|---:|---:|---:|")
        for name, (_, state, _, times) in schemes.items():
            words = f"{state.last_step()['words']:.0f} | {sum(state.state_dict()['lengths'])}" if state else "|"
            print(f"| {name} | {1e3 * statistics.median(times[3:]):.0f} | {words} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", default="100mbit", help="of the link of a machine, each way")
    parser.add_argument("--density", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--width", type=int, default=1536, help="of four layers")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.rank is not None:
        rank_of(asked.rank, asked)
        return
    if os.environ.get("OKTOPK_IN_NAMESPACES") != str(os.getppid()):
        sys.exit(subprocess.run([*IN_NAMESPACES, "sh", "-c", 'OKTOPK_IN_NAMESPACES=$$ "$@"; exit $?', "sh", sys.executable, *sys.argv],
                                check=False).returncode)
    for starts in machines(asked.rate):
        ranks = [subprocess.Popen([*starts[number // OF_NODE], sys.executable, *sys.argv, "--rank", str(number)],
                                  env={**os.environ, "GLOO_SOCKET_IFNAME": f"link{number // OF_NODE}"}) for number in range(RANKS)]
        status = max(each.wait() for each in ranks)
    sys.exit(status)


if __name__ == "__main__":
    main()
