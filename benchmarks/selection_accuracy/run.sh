#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh benchmarks/selection_accuracy/run.sh [OPTION...] [-- OPTION...]: how many entries the schemes select while they train
# a network, see --help. Builds what it needs; installs what is missing on Debian and Ubuntu.
set -eu

caller=$(pwd)
cd "$(dirname "$0")/../.."
# shellcheck source=cmake/setup.sh
. cmake/setup.sh
# shellcheck source=benchmarks/shared/functions.sh
. benchmarks/shared/functions.sh

here=benchmarks/selection_accuracy
ranks=4
density=0.01
epochs=5
algorithms=ok_topk_reused,paper_ok_topk,gaussian_k
every=1
program=
folder=build/selection_accuracy
csv=
plot=
data=

usage() {
  cat <<TEXT
sh benchmarks/selection_accuracy/run.sh [OPTION...] [-- OPTION...]

Trains a network on Fashion-MNIST with schemes whose selections hit k more or less well, and shows how many entries each
of them selects in each iteration: the Ok-Topk paper's Figure 6.

  --ranks P           of MPI (default: $ranks)
  --density D         share of the entries to select, in (0, 1] (default: $density)
  --epochs E          passes over the training images (default: $epochs)
  --algorithms LIST   schemes, separated by commas (default: $algorithms)
  --every N           keep every N-th iteration in the CSV file and the picture (default: $every)
  --data DIR          folder with Fashion-MNIST (default: where Debian installs it)
  --csv FILE          (default: $folder/selections.csv)
  --plot FILE         PNG, or what else matplotlib knows; "none" for none (default: $folder/selections.png)
  --program PATH      train_fashion_mnist (default: built under build/)
  -- OPTION...        what follows goes to the training as it is
TEXT
}

while [ $# -gt 0 ]; do
  case $1 in
    --)
      shift
      break
      ;;
    --*=*)
      option=${1%%=*}
      given=${1#*=}
      shift
      set -- "$option" "$given" "$@"
      continue
      ;;
    --ranks) ranks=$(value "$@") ;;
    --density) density=$(value "$@") ;;
    --epochs) epochs=$(value "$@") ;;
    --algorithms) algorithms=$(value "$@") ;;
    --every) every=$(value "$@") ;;
    --data) data=$(paths "$@") ;;
    --csv) csv=$(paths "$@") ;;
    --plot) plot=$(paths "$@") ;;
    --program) program=$(paths "$@") ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) fail "there is no option \"$1\"; --help lists them" ;;
  esac
  shift 2
done
whole --ranks "$ranks"
whole --epochs "$epochs"
whole --every "$every"

outputs "$folder" selections

packages() {
  if [ -z "$program" ]; then
    need g++ c++
    need cmake cmake
    need ninja-build ninja
    need_kokkos
    need libopenblas0-pthread '/usr/lib/*/openblas-*/libblas.so.3'
    need libopenmpi-dev mpicxx.openmpi
    need libcli11-dev '/usr/include/CLI/CLI.hpp'
    need zlib1g-dev '/usr/include/zlib.h'
  fi
  need openmpi-bin mpirun.openmpi
  [ -n "$data" ] || need dataset-fashion-mnist '/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz'
  need_matplotlib "$plot"
}
install_missing packages
if [ -z "$program" ]; then
  build build/examples -DCMAKE_BUILD_TYPE=Release -DMPI_CXX_COMPILER=mpicxx.openmpi -DOKTOPK_ENABLE_TESTS=OFF \
    -DOKTOPK_ENABLE_BENCHMARKS=OFF -- train_fashion_mnist
  program=build/examples/examples/train_fashion_mnist
fi
{ [ -f "$program" ] && [ -x "$program" ]; } || fail "\"$program\" is no program"
[ -z "$data" ] || set -- --data "$data" "$@"

make_scratch

echo algorithm,iteration,k,local_mean,local_min,local_max,global >"$scratch/all.csv"
for algorithm in $(printf '%s' "$algorithms" | tr ',' ' '); do
  say "Training with $algorithm on $ranks ranks"
  mpirun.openmpi -n "$ranks" "$program" --algorithm "$algorithm" --density "$density" --epochs "$epochs" \
    --log "$scratch/log.csv" "$@" >"$scratch/output" || {
    cat "$scratch/output" >&2
    fail "the training with $algorithm failed"
  }
  sed "1d; s/^/$algorithm,/" "$scratch/log.csv" >>"$scratch/all.csv"
done

k=$(awk -F, 'NR == 2 { print $3 }' "$scratch/all.csv")
title="Fashion-MNIST, $ranks ranks, density $density (k = $k)"
printf '\n%s, %s:\n\n' "$title" "$(date +%Y-%m-%d)"
awk -f $here/table.awk "$scratch/all.csv"
awk -F, -v every="$every" 'NR == 1 || ($2 - 1) % every == 0' "$scratch/all.csv" >"$csv"
[ "$plot" = none ] || "$(python_with_matplotlib)" $here/plot.py "$csv" "$plot" "$title"
say "Wrote $csv$([ "$plot" = none ] || printf ', %s' "$plot")"
