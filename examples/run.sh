#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh examples/run.sh [OPTION...]: builds the examples and trains a network with dense and with Ok-Topk SGD on 4 ranks,
# or as many as the variable RANKS says. Installs what is missing on Debian and Ubuntu; on a terminal it asks first,
# unless --yes is among the OPTIONs. Builds in the folder that --build DIR or the variable OKTOPK_BUILD names; else in
# build/ of the checkout or, where that cannot be written, of the current folder. All other OPTIONs go to the training, for
# example --epochs 1, --density 0.001 or --data DIR.
set -eu
called_from=$(pwd)
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

# Takes --yes and --build out of the arguments, and leaves the others in their order.
folder=${OKTOPK_BUILD:-}
for argument in "$@"; do
  shift
  case $argument in
    --yes)
      # shellcheck disable=SC2034
      assume_yes=yes
      ;;
    --build) folder=--next ;;
    --build=*) folder=${argument#--build=} ;;
    *)
      if [ "$folder" = --next ]; then
        folder=$argument
      else
        set -- "$@" "$argument"
      fi
      ;;
  esac
done
[ "$folder" != --next ] || fail "--build needs a folder"
choose_builds "$folder"

for option in --csv --log --summary; do
  ! given "$option" "$@" || fail "$option is for one training, and there are two here: run train_fashion_mnist itself"
done

packages="g++ cmake ninja-build libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev libopenblas0-pthread libopenmpi-dev
  openmpi-bin libcli11-dev libfmt-dev zlib1g-dev"
given --data "$@" || packages="$packages dataset-fashion-mnist"

# train ALGORITHM [OPTION...]
train() {
  algorithm=$1
  shift
  say "Training with $algorithm on $ranks ranks"
  attended mpirun.openmpi -n "$ranks" "$builds/run/examples/examples/train_fashion_mnist" \
    --algorithm "$algorithm" --summary "$builds/run/examples/$algorithm.summary" "$@"
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

say "Builds bare_call and train_fashion_mnist, and trains with dense and with ok_topk on $ranks ranks: about $(minutes 4 2) minutes on" \
  "$(cores) cores with a new build"
# conclusion FILE FILE: what the summaries of dense and of ok_topk say.
conclusion() {
  awk '
    {
      for (i = 1; i <= NF; i++) {
        split($i, pair, "=")
        value[NR, pair[1]] = pair[2]
      }
    }
    END {
      printf "ok_topk sent 1/%.0f of the words of dense; accuracy %.2f %%, dense %.2f %%: these two rows are the result.\n",
        value[1, "words_per_iteration_mean"] / value[2, "words_per_iteration_mean"], 100 * value[2, "accuracy"],
        100 * value[1, "accuracy"]
    }' "$@"
  echo "Ranks of one machine have no network between them, so the seconds say little; to emulate one:"
  echo "sudo python3 benchmarks/run.py network"
  echo 'Your own program: README.md, "A program of your own". The table, row by row: examples/README.md, "A run".'
}

# shellcheck disable=SC2086
install_missing $packages
build "$builds/run/examples" -DCMAKE_BUILD_TYPE=Release -DMPI_CXX_COMPILER=mpicxx.openmpi -DOKTOPK_ENABLE_TESTS=OFF \
  -DOKTOPK_ENABLE_BENCHMARKS=OFF -- train_fashion_mnist bare_call

for option in --help --list --version; do
  ! given "$option" "$@" || exec "$builds/run/examples/examples/train_fashion_mnist" "$option"
done
rm -f "$builds/run/examples/dense.summary" "$builds/run/examples/ok_topk.summary"

say "The bare call on $ranks ranks"
mpirun.openmpi -n "$ranks" "$builds/run/examples/examples/bare_call"

given --seed "$@" || set -- --seed 1 "$@"
train dense "$@"
given --density "$@" || set -- --density 0.01 "$@"
train ok_topk "$@"

say "Done"
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)
printf '\n%s ranks on %s cores%s, %s:\n\n' "$ranks" "$(cores)" "${processor:+ ($processor)}" "$(date +%Y-%m-%d)"
table "$builds/run/examples/dense.summary" "$builds/run/examples/ok_topk.summary"
echo
conclusion "$builds/run/examples/dense.summary" "$builds/run/examples/ok_topk.summary"
