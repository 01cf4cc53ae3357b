#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh benchmarks/simulated/run.sh [OPTION...]: the schemes on the simulated network of Piz Daint, see --help. Installs
# what is missing on Debian and Ubuntu.
set -eu

caller=$(pwd)
cd "$(dirname "$0")/../.."
# shellcheck source=cmake/setup.sh
. cmake/setup.sh
# shellcheck source=benchmarks/shared/functions.sh
. benchmarks/shared/functions.sh

here=benchmarks/simulated
bert=133547324 # parameters of BERT in the paper (Table 2)
density=0.01
ranks=32,64,128,256
algorithms=dense,dense_rabenseifner,dense_bfloat16,topk_a,gaussian_k,topk_dsa,gtopk,ok_topk
scale=
allreduce=rab_rdb
steps=2
platform=$here/piz_daint.xml
folder=build/simulated
csv=
plot=

usage() {
  cat <<TEXT
sh benchmarks/simulated/run.sh [OPTION...]

Runs oktopk_bench on SimGrid's simulation of MPI (SMPI) over the network of Piz Daint: the communication part of the
Ok-Topk paper's Figure 12, the weak scaling of BERT (n = $bert, density 1 %). Times are simulated times of
communication; computation takes none.

  --ranks LIST        numbers of ranks (default: $ranks)
  --algorithms LIST   schemes (default: $algorithms)
  --scale FACTOR      simulate n / FACTOR entries on links of bandwidth / FACTOR (default: by scheme what
                      256 ranks can do in $most_gib GiB: 32 for ok_topk, 256 for topk_a, 512 for gaussian_k, else 128)
  --steps S           iterations to measure, after one that is not (default: $steps)
  --allreduce NAME    what MPI_Allreduce does, in SMPI's words (default: $allreduce, Rabenseifner's algorithm)
  --platform FILE     of SimGrid, with hosts nid0, nid1, ... (default: $platform)
  --csv FILE          (default: $folder/scaling.csv)
  --plot FILE         PNG, or what else matplotlib knows (default: $folder/scaling.png)
  --build DIR         where to build (default: $folder)
TEXT
}
most_gib=16

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h)
      usage
      exit 0
      ;;
    --ranks) ranks=$(value "$@") ;;
    --algorithms) algorithms=$(value "$@") ;;
    --scale) scale=$(value "$@") ;;
    --steps) steps=$(value "$@") ;;
    --allreduce) allreduce=$(value "$@") ;;
    --platform) platform=$(paths "$@") ;;
    --csv) csv=$(paths "$@") ;;
    --plot) plot=$(paths "$@") ;;
    --build) folder=$(paths "$@") ;;
    *) fail "unknown option $1 (--help lists them)" ;;
  esac
  shift 2
done
csv=${csv:-$folder/scaling.csv}
plot=${plot:-$folder/scaling.png}

whole --steps "$steps"
[ -z "$scale" ] || whole --scale "$scale"
[ -r "$platform" ] || fail "cannot read the platform $platform"

# each ACTION: calls it with every algorithm and number of ranks, the smaller numbers first.
each() {
  for p in $(echo "$ranks" | tr , ' '); do
    for algorithm in $(echo "$algorithms" | tr , ' '); do
      "$1" "$algorithm" "$p"
    done
  done
}

packages() {
  need g++ c++
  need cmake cmake
  need ninja-build ninja
  need libsimgrid-dev smpicxx
  need libcli11-dev '/usr/include/CLI/CLI.hpp'
  need python3-matplotlib '/usr/lib/python3/dist-packages/matplotlib/__init__.py'
  [ -n "${Kokkos_ROOT:-}" ] || need libtrilinos-kokkos-dev '/usr/include/trilinos/Kokkos_Core.hpp'
}

build_simulated() {
  say "Building oktopk_bench for SMPI on $(nproc) cores"
  mkdir -p "$folder"
  # While CMake tries the compiler out, it has to make programs that start without smpirun.
  {
    SMPI_PRETEND_CC=1 cmake -S $here -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=smpicxx &&
      cmake --build "$folder" --parallel "$(nproc)"
  } >"$folder/build.log" 2>&1 || {
    tail -n 40 "$folder/build.log" >&2
    fail "building failed (all it said is in $folder/build.log)"
  }
}

# scale_of ALGORITHM: by what memory allows at 256 ranks, see README.md.
scale_of() {
  case ${scale:-$1} in
    ok_topk | paper_ok_topk) echo 32 ;;
    topk_a) echo 256 ;;
    gaussian_k) echo 512 ;;
    *[!0-9]*) echo 128 ;;
    *) echo "$scale" ;;
  esac
}

# check ALGORITHM RANKS: refuses what cannot run or would not fit into memory; bytes per entry as measured.
check() {
  whole --ranks "$2"
  short=$(awk -v algorithm="$1" -v ranks="$2" -v length_of=$((bert / $(scale_of "$1"))) '
    BEGIN {
      bytes = algorithm ~ /ok_topk/ ? 14 : 28
      if (algorithm == "topk_a") bytes = 16 + 0.14 * ranks
      if (algorithm == "gaussian_k") bytes = 16 + 0.45 * ranks
      needed = ranks * (length_of * bytes + 5e6) / 2 ^ 30
    }
    /^MemAvailable/ { available = $2 / 2 ^ 20 }
    END {
      if (available > 0 && needed > available) {
        printf "%s on %d ranks needs about %.1f GiB of memory, but only %.1f are free: take a larger --scale\n",
               algorithm, ranks, needed, available
      }
    }' /proc/meminfo)
  [ -z "$short" ] || fail "$short"
  total=$((total + 1))
}

# simulate ALGORITHM RANKS: appends one line to the table.
simulate() {
  factor=$(scale_of "$1")
  length=$((bert / factor))
  count=$((count + 1))
  say "($count of $total) $1 on $2 ranks, 1/$factor of the size"
  awk -v factor="$factor" '
    match($0, / bw="[0-9.]+/) {
      $0 = substr($0, 1, RSTART + 4) substr($0, RSTART + 5, RLENGTH - 5) / factor substr($0, RSTART + RLENGTH)
    }
    { print }' "$platform" >"$work/platform.xml"
  awk -v ranks="$2" 'BEGIN { for (i = 0; i < ranks; i++) print "nid" i }' >"$work/hosts"
  # Links share their bandwidth evenly and have no latency but their own (CM02, without TCP's acknowledgements): SMPI's
  # own model multiplies both by factors of a cluster with Ethernet, by message size. 0.5 us of software a message.
  # shellcheck disable=SC2086
  TMPDIR=$work smpirun -np "$2" -platform "$work/platform.xml" -hostfile "$work/hosts" --log=root.thres:warning \
    --cfg=network/model:CM02 --cfg=network/crosstraffic:0 --cfg=smpi/simulate-computation:no \
    --cfg=smpi/os:0:2.5e-7:0 --cfg=smpi/ois:0:2.5e-7:0 --cfg=smpi/or:0:2.5e-7:0 \
    --cfg=smpi/coll-selector:mpich --cfg=smpi/allreduce:"$allreduce" $privatize \
    "$folder/oktopk_bench" --algorithm "$1" --length "$length" --density $density --warmup 1 --steps "$steps" \
    --no-verify --csv "$work/steps.csv" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "the simulation of $1 on $2 ranks failed"
  }
  awk -F, -v OFS=, -v factor="$factor" '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    {
      seconds += $column["seconds"]
      if ($column["words_sent_max"] > words) words = $column["words_sent_max"]
      rows++
    }
    END {
      print $column["algorithm"], $column["ranks"], factor, $column["length"], $column["k"],
            sprintf("%.6g", 1000 * seconds / rows), sprintf("%.0f", words * factor), $column["messages_sent_max"],
            $column["global_selected"] * factor
    }' "$work/steps.csv" >>"$work/table.csv"
  say "    $(tail -n 1 "$work/table.csv" | cut -d, -f6) ms"
}

# finish: what was measured before a failure is not lost.
finish() {
  [ ! -e "$work/table.csv" ] || cp "$work/table.csv" "$folder/interrupted.csv"
  rm -rf "$work"
}

total=0
each check
install_missing packages
build_simulated
work=$(mktemp -d)
trap finish EXIT
trap 'exit 130' INT TERM HUP
# Each rank needs the state of Kokkos for itself, as it has the program's.
kokkos=$(ldd "$folder/oktopk_bench" | awk '/kokkos/ { list = list (list == "" ? "" : ";") $3 } END { print list }')
privatize=${kokkos:+--cfg=smpi/privatize-libs:$kokkos}

count=0
echo algorithm,ranks,scale,length,k,milliseconds,words_sent_max,messages_sent_max,global_selected >"$work/table.csv"
each simulate

mkdir -p "$(dirname "$csv")" "$(dirname "$plot")"
mv "$work/table.csv" "$csv"
/usr/bin/python3 $here/plot.py "$csv" "$plot" # the system's, for its matplotlib
say "Done: $csv, $plot"
printf '\nSimulated time of communication per iteration in ms, n = %s, density %s:\n\n' $bert $density
awk -F, -f $here/table.awk "$csv"
