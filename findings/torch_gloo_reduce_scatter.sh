#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# sh findings/torch_gloo_reduce_scatter.sh: the bytes that calls of Gloo's process group move. Needs unshare, ip and 6 GB for a
# while.
cd "$(dirname "$0")" || exit
# shellcheck source=findings/common.sh
. ./common.sh
need_of_pypi torch==2.15.0 numpy==2.4.6
cat >"$scratch/bytes.py" <<'EOF2'
import sys

import torch
import torch.distributed as dist
import torch.multiprocessing

RANKS, SHARE = 4, 1 << 20


def sent():
    """Bytes on the loopback interface, over which all ranks send."""
    with open("/proc/net/dev") as table:
        return int(next(line for line in table if "lo:" in line).split()[1])


def rank_of_four(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=RANKS)
    full, share = torch.ones(RANKS * SHARE), torch.empty(SHARE)
    said = []
    for name, call in (("all_reduce", lambda: dist.all_reduce(full)),
                       ("reduce_scatter", lambda: dist.reduce_scatter_tensor(share, full)),
                       ("all_to_all", lambda: dist.all_to_all_single(torch.empty_like(full), full)),
                       ("all_gather", lambda: dist.all_gather_into_tensor(torch.empty_like(full), share))):
        dist.barrier()
        before = sent()
        dist.barrier()
        call()
        dist.barrier()
        said.append(f"{name} {round((sent() - before) / full.nbytes)}")
        dist.barrier()
    if rank == 0:
        print(*said, sep=", ")


if __name__ == "__main__":
    torch.multiprocessing.spawn(rank_of_four, (f"{sys.argv[1]}/store",), nprocs=RANKS)
EOF2
echo "version:  torch $("$scratch/venv/bin/python" -c 'import torch; print(torch.__version__)')"
verdict "sizes of the tensor that 4 ranks send together: all_reduce 6, reduce_scatter 3, all_to_all 3, all_gather 3" \
  "all_reduce 6, reduce_scatter 6, all_to_all 3, all_gather 3" \
  "$(unshare --map-root-user --net sh -c 'ip link set lo up && exec "$@"' sh "$scratch/venv/bin/python" "$scratch/bytes.py" "$scratch" \
    2>"$scratch/log" | tail -n 1)"
