#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh benchmarks/network/gloo.sh BENCH GLOO_BENCHMARK [LENGTH [ROUNDS [CSV]]]: the library's dense allreduces beside Gloo's, by
# turns, on the emulated cluster (8 ranks, 1 Gbit/s); the median of each round, in seconds. BENCH is `back_to_back` of a
# build with Open MPI, which measures as Gloo's benchmark does. GLOO_BENCHMARK is the program `benchmark` of
# https://github.com/pytorch/gloo, built with -DBUILD_BENCHMARK=ON. Needs root, iproute2 and Open MPI. OPEN_MPI_OPTIONS in
# the environment goes to mpirun.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
bench=$(realpath "$1")
GLOO_BENCHMARK=$(realpath "$2")
GLOO_ELEMENTS=${3:-16777216}
rounds=${4:-5}
csv=${5:-}
GLOO_ITERATIONS=5
export GLOO_BENCHMARK GLOO_ELEMENTS GLOO_ITERATIONS
entries='ring_pipelined
gloo/new_allreduce_ring
halving_doubling
gloo/allreduce_halving_doubling
ring_chunked
gloo/allreduce_ring_chunked'

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT # else a signal ends dash without the line above
trap 'exit 143' TERM HUP
setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc \
  sh "$here/cluster.sh" "$scratch" 1gbit 8 open_mpi "$(command -v mpirun.openmpi || command -v mpirun)" "$rounds" \
  "$entries" "$bench" --length "$GLOO_ELEMENTS" --warmup 2 --steps "$GLOO_ITERATIONS"

# One row a round and entry: that of Gloo is its own median; ours is made here.
{
  printf 'algorithm,ranks,length,seconds,round\n'
  {
    awk -F , -v steps="$GLOO_ITERATIONS" 'NR > 1 {
      row[n++] = $6
      if (n == steps) {
        for (i = 1; i < n; ++i) {
          for (j = i; j > 0 && row[j - 1] + 0 > row[j] + 0; --j) { t = row[j]; row[j] = row[j - 1]; row[j - 1] = t }
        }
        print $1 "," $2 "," $3 "," row[int(n / 2)]
        n = 0
      }
    }' "$scratch/rows.csv"
    cat "$scratch/gloo.csv"
  } | awk -F , '{ print $0 "," ++round[$1] }'
} >"$scratch/medians.csv"
[ -z "$csv" ] || cp "$scratch/medians.csv" "$csv"
sed 1d "$scratch/medians.csv" | sort -t , -k 1,1 -k 4,4g | awk -F , '
  { all[$1] = all[$1] sprintf(" %.4f", $4); value[$1, ++count[$1]] = $4 }
  END { for (name in count) printf "%-34s median %.4f of%s\n", name, value[name, int((count[name] + 1) / 2)], all[name] }' | sort
