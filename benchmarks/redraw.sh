#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh benchmarks/redraw.sh [FOLDER]: draws the pictures of all results that are kept, in their places below FOLDER, which is
# the checkout unless it is given. Needs python3-matplotlib.
set -eu
export LC_ALL=C
folder=$(realpath "${1:-"$(dirname "$0")/.."}")
cd "$(dirname "$0")/.."

# draw "CSV..." PICTURE TITLE NOTE [OPTION...]
draw() {
  files=$1
  picture=$2
  title=$3
  note=$4
  shift 4
  mkdir -p "$folder/$(dirname "$picture")"
  # shellcheck disable=SC2086
  python3 benchmarks/run.py show $files --plot "$folder/$picture" --title "$title" --note "$note" "$@" >/dev/null
}

emulated='Emulated cluster: 8 MPI ranks on 2 cores of an AMD EPYC, TCP links.'
factors='×: how many times as fast as the best dense allreduce.'
results=benchmarks/network/results
draw "$results/all_schemes_1gbit.csv $results/all_schemes_100mbit.csv" docs/pictures/all_schemes.png '' \
  "$emulated n = 14,728,266 (VGG-16), density 1 %. Medians, selection included. $factors" --shown \
  'ok_topk, ok_topk(format=packed), ok_topk(format=packed, values=bfloat16), gtopk, topk_a, topk_dsa'
draw $results/dense_1gbit.csv $results/dense_1gbit.png 'Dense allreduces, coded and not' \
  "$emulated 64 MiB of float: n = 16,777,216. Medians. dense is the allreduce of Open MPI as it chooses. $factors"
results=benchmarks/simulated/results
draw $results/piz_daint.csv $results/piz_daint.png "Communication of BERT's gradient on 32 to 256 ranks" \
  'Simulated (SimGrid) on the network of Piz Daint: communication only, computation takes no time. n = 133,547,324,
density 1 %.'
draw $results/to_1024.csv $results/to_1024.png "Communication of BERT's gradient on 16 to 1,024 ranks" \
  'Simulated (SimGrid) on the network of Piz Daint: communication only, computation takes no time. n = 133,547,324,
density 1 %. Up to 256 ranks are in one group of the network, 1,024 in four.'
results=benchmarks/selection_accuracy/results
draw $results/fashion_mnist.csv $results/fashion_mnist.png 'Entries that the schemes select while a network is trained' \
  'Measured: Fashion-MNIST, n = 1,863,690, density 1 %, 4 MPI ranks. One iteration in 10 of 5 epochs; the band spans 7 of
these.'
results=benchmarks/training/results
draw $results/fashion_mnist.csv $results/fashion_mnist.png 'Training against the words that a rank sends' \
  'Measured: Fashion-MNIST, n = 1,863,690, density 1 %, 4 MPI ranks, 5 epochs. A mark for each epoch.'
results=benchmarks/format_bench/results
draw $results/fashion_mnist.csv $results/fashion_mnist.png 'Sparse formats on one core' \
  'Accumulators of training: Fashion-MNIST, n = 1,863,690, density 1 %, 16 ranks, each selection as 1, 16 and 37 messages: a
mark each. One core of an AMD EPYC.'
results=benchmarks/torch/results
draw $results/vgg16_100mbit.csv $results/vgg16_100mbit.png 'Training of VGG-16 behind links of 100 Mbit/s' \
  'Measured: Fashion-MNIST, VGG-16 of 922,842 parameters, 4 MPI ranks on 2 cores of an AMD EPYC, density 2 %. Time of
evaluations is not counted.'
draw $results/bert_loss.csv $results/bert_loss.png 'Training of a masked language model: loss, xi and entries' \
  'Measured: King James Bible, 1,315,536 parameters, 4 MPI ranks on 2 cores of an AMD EPYC, no links, density 2 %.'
if [ -s $results/peers_time.csv ]; then
  python3 benchmarks/run.py peers --part show --results $results --plot "$folder/$results/peers.png" >/dev/null
  python3 benchmarks/run.py peers --part show --results $results --plot "$folder/docs/pictures/loss.png" --rate 1gbit \
    --algorithm 'ddp, powersgd(rank=4), powersgd(rank=4, start=2), ok_topk' >/dev/null
fi
results=benchmarks/automatic/results
if [ -s $results/changing.csv ]; then
  mkdir -p "$folder/$results"
  python3 benchmarks/run.py changing --part show --csv $results/changing.csv --plot "$folder/$results/changing.png" >/dev/null
fi
results=benchmarks/torch/results
draw $results/vgg16_xi.csv $results/vgg16_xi.png 'Training of VGG-16: loss, xi and entries' \
  'Measured: Fashion-MNIST, 922,842 parameters, 4 MPI ranks on 2 cores of an AMD EPYC, no links, density 2 %, momentum 0.9.'
results=benchmarks/automatic/results
if [ -s $results/grid.csv ]; then
  python3 benchmarks/run.py grid --part show --results $results --pictures "$folder/$results" >/dev/null
fi
