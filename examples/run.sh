#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh examples/run.sh [OPTION...]: builds the examples and trains a network with dense and with Ok-Topk SGD on 4 ranks,
# or as many as the variable RANKS says. Installs what is missing on Debian and Ubuntu. The OPTIONs go to the training,
# for example --epochs 1, --density 0.001 or --data DIR.
set -eu
cd "$(dirname "$0")/.."
. cmake/setup.sh

ranks=${RANKS:-4}

# given OPTION ARGUMENT...: whether the user has set OPTION among the arguments.
given() {
  option=$1
  shift
  for argument in "$@"; do
    case $argument in
      "$option" | "$option"=*) return 0 ;;
    esac
  done
  return 1
}

packages="g++ cmake ninja-build libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev libopenblas0-pthread libopenmpi-dev
  openmpi-bin libcli11-dev libfmt-dev zlib1g-dev"
given --data "$@" || packages="$packages dataset-fashion-mnist"

# train ALGORITHM [OPTION...]
train() {
  algorithm=$1
  shift
  say "Training with $algorithm on $ranks ranks"
  mpirun.openmpi -n "$ranks" build/examples/examples/train_fashion_mnist \
    --algorithm "$algorithm" --summary "build/examples/$algorithm.summary" "$@"
}

# table FILE...: the summaries side by side.
table() {
  awk '
    {
      columns++
      for (i = 1; i <= NF; i++) {
        split($i, pair, "=")
        value[columns, pair[1]] = pair[2]
      }
    }
    function row(title, key, format, scale,   c) {
      printf "| %-44s |", title
      for (c = 1; c <= columns; c++) {
        text = key == "" ? "" : value[c, key]
        if (format != "" && text != "") text = sprintf(format, text * scale)
        printf " %12s |", text
      }
      printf "\n"
    }
    END {
      row("", "algorithm", "", 1)
      printf "| %s |", "--------------------------------------------"
      for (c = 1; c <= columns; c++) printf " -----------: |"
      printf "\n"
      row("test accuracy, %", "accuracy", "%.2f", 100)
      row("training loss", "loss", "%.4f", 1)
      row("words sent per rank and iteration, mean", "words_per_iteration_mean", "%.0f", 1)
      row("the same, the most of any rank and iteration", "words_per_iteration_max", "%.0f", 1)
      row("lower bound 2k(P-1)/P (dense: k = n)", "lower_bound_words", "%.0f", 1)
      row("bound that the scheme gives itself", "bound_words", "%.0f", 1)
      row("time in computation, s", "compute_seconds", "%.1f", 1)
      row("time in selection, s", "selection_seconds", "%.1f", 1)
      row("time in communication, s", "communication_seconds", "%.1f", 1)
      row("time in all, s", "total_seconds", "%.1f", 1)
    }' "$@"
}

# shellcheck disable=SC2086
install_missing $packages
build build/examples -DCMAKE_BUILD_TYPE=Release -DMPI_CXX_COMPILER=mpicxx.openmpi -DOKTOPK_ENABLE_TESTS=OFF \
  -DOKTOPK_ENABLE_BENCHMARKS=OFF -- bare_call train_fashion_mnist

say "The bare call on $ranks ranks"
mpirun.openmpi -n "$ranks" build/examples/examples/bare_call

given --seed "$@" || set -- --seed 1 "$@"
train dense "$@"
given --density "$@" || set -- --density 0.01 "$@"
train ok_topk "$@"

say "Done"
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)
printf '\n%s ranks on %s cores%s, %s:\n\n' "$ranks" "$(nproc)" "${processor:+ ($processor)}" "$(date +%Y-%m-%d)"
table build/examples/dense.summary build/examples/ok_topk.summary
