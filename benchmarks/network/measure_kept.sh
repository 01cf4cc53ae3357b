#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh benchmarks/network/measure_kept.sh BUILD GLOO_BENCHMARK [FOLDER]: measures all tables of benchmarks/network that are
# kept, some 25 minutes on two idle cores. BUILD is a folder with oktopk_bench and back_to_back, Release, for Open MPI;
# GLOO_BENCHMARK is the program `benchmark` of https://github.com/pytorch/gloo. The files go to FOLDER, build/kept unless
# given; a table whose file is there is not measured again, so the same command goes on where an earlier run ended. At the
# end the files are copied to their places, and the pictures are drawn. MPICH_BUILD in the environment names such a folder
# for MPICH, for one more table. RANKS and LENGTH are for trials: with them nothing is copied and drawn.
set -eu
export LC_ALL=C

build=$(realpath "$1")
gloo=$(realpath "$2")
mpich=${MPICH_BUILD:+$(realpath "$MPICH_BUILD")}
cd "$(dirname "$0")/../.."
kept=${3:-build/kept}
mkdir -p "$kept"
ranks=${RANKS:-8}
vgg16=${LENGTH:-14728266}
mib64=${LENGTH:-16777216}
mib1=${LENGTH:-262144}

# table NAME OPTION...: measures NAME.csv. Only a file that is complete has this name.
table() {
  name=$1
  shift
  if [ -s "$kept/$name.csv" ]; then
    echo "$kept/$name.csv is there"
    return
  fi
  python3 benchmarks/run.py network --ranks "$ranks" --bench "$build/oktopk_bench" --back-to-back "$build/back_to_back" \
    --gloo "$gloo" --csv "$kept/$name.part" "$@" >"$kept/$name.txt"
  cat "$kept/$name.txt"
  mv "$kept/$name.part" "$kept/$name.csv"
}

formats='ok_topk, ok_topk(format=packed), ok_topk(format=packed, values=bfloat16), ok_topk(format=packed, values=fixed8),
ok_topk(format=packed, values=fixed4), ok_topk(format=packed, values=fixed2)'
sparse="$formats, paper_ok_topk, gtopk, topk_a, topk_dsa, gaussian_k, dense_bfloat16"
rings='dense, dense(mpi=ring), dense(mpi=segmented_ring), ring_chunked, ring_pipelined, gloo/new_allreduce_ring,
gloo/allreduce_ring_chunked'
block_float='ring_chunked(codec=block_float), ring_chunked(codec=block_float, codec_level=message)'
coded="$block_float, ring_chunked(codec=zfp), ring_chunked(codec=zfp, codec_level=message, ranks_may_differ=true)"

table all_schemes_1gbit --length "$vgg16" --algorithm "$sparse, dense" --all-dense --warmup 1 --steps 6 --dense-steps 3 \
  --rounds 2
# What is slower than the rings at 1 Gbit/s sends as many bytes or more, and takes a minute for a call here.
table all_schemes_100mbit --rate 100mbit --length "$vgg16" --algorithm "$sparse, $rings" --warmup 1 --steps 5 \
  --dense-steps 2
table all_schemes_10gbit --rate 10gbit --length "$vgg16" --algorithm "$formats, dense" --all-dense --warmup 1 --steps 6 \
  --dense-steps 3
table dense_1gbit --length "$mib64" --algorithm "$coded, dense" --all-dense --warmup 1 --steps 3
table dense_100mbit --rate 100mbit --length "$mib64" --algorithm "dense, ring_chunked, $coded" --warmup 0 --steps 2
table dense_10gbit --rate 10gbit --length "$mib64" --algorithm "dense, ring_chunked, ring_pipelined, $block_float" \
  --warmup 1 --steps 3 --rounds 2
table dense_1gbit_1mib --length "$mib1" --algorithm dense --all-dense --warmup 2 --steps 5 --rounds 5
if [ -n "$mpich" ]; then
  build=$mpich
  table dense_1gbit_mpich --length "$mib64" --algorithm dense --all-dense --warmup 1 --steps 2
fi

if [ -z "${RANKS-}${LENGTH-}" ]; then
  cp "$kept"/*.csv benchmarks/network/results
  sh benchmarks/redraw.sh
fi
