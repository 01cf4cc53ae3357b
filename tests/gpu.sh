#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests and measures on an NVIDIA GPU, without a network; see usage below. What takes time can be done before, on a machine
# that has no GPU.
set -eu
called_from=$(pwd)
cd "$(dirname "$0")/.."
. cmake/setup.sh
. tests/cuda_emulator/find_nvcc.sh

suites="select partition exchange format codec tools sgd training dense algorithm"

usage() {
  echo "sh tests/gpu.sh --kokkos DIR [--arch NAME] [--cccl DIR] [--nccl DIR] [--suites LIST] [--build-only] [--folder DIR]"
  echo "sh tests/gpu.sh --run [--folder DIR] [--results DIR] [--seconds N]"
  echo "The first form builds, and goes on to the second, which only runs, and needs neither a compiler nor CMake."
  echo "  --kokkos DIR   the source of a Kokkos that works with this nvcc: docs/backends.md has the versions"
  echo "  --arch NAME    the GPU, as Kokkos calls it, such as HOPPER90; else that of nvidia-smi"
  echo "  --cccl DIR     a checkout of CCCL with cub::DeviceTopK, 3.3 or later, to compare with"
  echo "  --nccl DIR     an NCCL (include/nccl.h, lib/libnccl.so): what one rank can show of it is tested, too"
  echo "  --suites LIST  of the suites, comma-separated, those named here: $(echo "$suites" | tr ' ' ',')"
  echo "  --build-only   builds the programs: for a machine without a GPU, whose DIR/programs the other one gets"
  echo "  --folder DIR   builds in DIR and puts the programs into DIR/programs; else in build/gpu"
  echo "  --results DIR  writes there, as it comes, parts.csv and the files of each part; else into DIR/results"
  echo "  --seconds N    begins nothing after N seconds (default 600); and gives no suite more than three tenths of them"
}

kokkos=
arch=
cccl=
nccl=
does_build=yes
does_run=yes
place=build/gpu # build() of setup.sh has a $folder of its own
results=
seconds=600
while [ $# -gt 0 ]; do
  case $1 in
    --kokkos | --arch | --cccl | --nccl | --suites | --folder | --results | --seconds)
      [ $# -ge 2 ] || fail "$1 needs a value"
      ;;
  esac
  case $1 in
    --kokkos) kokkos=$(cd "$called_from" && cd "$2" && pwd) || fail "there is no folder $2" ;;
    --arch) arch=$2 ;;
    --cccl) cccl=$(cd "$called_from" && cd "$2" && pwd) || fail "there is no folder $2" ;;
    --nccl) nccl=$(cd "$called_from" && cd "$2" && pwd) || fail "there is no folder $2" ;;
    --suites) suites=$(echo "$2" | tr ',' ' ') ;;
    --folder) place=$(cd "$called_from" && mkdir -p "$2" && cd "$2" && pwd) || fail "cannot make the folder $2" ;;
    --results) results=$(cd "$called_from" && mkdir -p "$2" && cd "$2" && pwd) || fail "cannot make the folder $2" ;;
    --seconds) seconds=$2 ;;
    --build-only) does_run=no ;;
    --run) does_build=no ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      fail "unknown option $1"
      ;;
  esac
  case $1 in
    --build-only | --run) shift ;;
    *) shift 2 ;;
  esac
done
case $seconds in
  *[!0-9]* | '') fail "--seconds needs a number, not $seconds" ;;
esac
programs=$place/programs
results=${results:-$place/results}

# kokkos_arch CAPABILITY: what Kokkos calls the architecture of a compute capability.
kokkos_arch() {
  case $1 in
    7.0) echo VOLTA70 ;;
    7.5) echo TURING75 ;;
    8.0) echo AMPERE80 ;;
    8.6) echo AMPERE86 ;;
    8.9) echo ADA89 ;;
    9.0) echo HOPPER90 ;;
    10.0) echo BLACKWELL100 ;;
    12.0) echo BLACKWELL120 ;;
    *) fail "no name of Kokkos is known for the compute capability '$1': give it with --arch" ;;
  esac
}

# build_kokkos: in $place/kokkos/installed, from a copy, whose compiler is told the architecture: CMake asks it before
# Kokkos does.
build_kokkos() {
  made=$place/kokkos
  [ ! -e "$made/installed/lib/cmake/Kokkos/KokkosConfig.cmake" ] || return 0
  [ -x "$kokkos/bin/nvcc_wrapper" ] || fail "$kokkos is no source of Kokkos: there is no bin/nvcc_wrapper"
  say "Building Kokkos for CUDA ($arch) and Serial"
  mkdir -p "$made"
  rm -rf "$made/source"
  cp -r "$kokkos" "$made/source"
  sed -i "s/^default_arch=.*/default_arch=\"sm_${arch##*[A-Z]}\"/" "$made/source/bin/nvcc_wrapper"
  {
    cmake -S "$made/source" -B "$made/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=20 \
      -DCMAKE_CXX_COMPILER="$made/source/bin/nvcc_wrapper" -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_CUDA=ON \
      "-DKokkos_ARCH_$arch=ON" -DKokkos_ENABLE_IMPL_VIEW_LEGACY=ON -DCMAKE_INSTALL_LIBDIR=lib \
      -DCMAKE_INSTALL_PREFIX="$made/installed" &&
      cmake --build "$made/build" --parallel "$(nproc)" --target install
  } >"$made/log" 2>&1 || {
    tail -n 20 "$made/log" >&2
    fail "Kokkos could not be built (all it said is in $made/log)"
  }
}

# keep PROGRAM: copies it to $programs, and the libraries that another machine may lack.
keep() {
  mkdir -p "$programs/lib"
  strip -o "$programs/$(basename "$1")" "$1"
  ldd "$1" | awk '$3 ~ /lib(benchmark|fmt|xxhash|cudart)/ { print $3 }' | xargs -r -I FILE cp -L FILE "$programs/lib/"
}

build_programs() {
  nvcc=$(find_nvcc) || exit 1
  PATH=$(dirname "$nvcc"):$PATH
  export PATH
  compiler_cache=none # it knows no nvcc_wrapper
  [ -n "$arch" ] || arch=$(kokkos_arch "$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1)")
  mkdir -p "$place"
  place=$(cd "$place" && pwd)
  programs=$place/programs
  build_kokkos
  targets="select_bench device_cost"
  [ -z "$nccl" ] || targets="$targets test_nccl_one_rank"
  for suite in $suites; do
    targets="$targets test_$suite"
  done
  # shellcheck disable=SC2086
  build "$place/build" -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O2 -DKokkos_ROOT="$place/kokkos/installed" \
    -DCMAKE_CXX_COMPILER="$place/kokkos/installed/bin/nvcc_wrapper" ${cccl:+-DCCCL_DIR="$cccl/lib/cmake/cccl"} \
    ${nccl:+-DNCCL_INCLUDE_DIR="$nccl/include" -DNCCL_LIBRARY="$nccl/lib/libnccl.so"} \
    -DOKTOPK_TEST_ONLY_UNITS="^($(echo "$suites" | tr ' ' '|'))/" -DOKTOPK_ENABLE_MPI=OFF -DOKTOPK_ENABLE_ZFP=OFF \
    -DOKTOPK_TEST_DISCOVERY=OFF \
    -DOKTOPK_ENABLE_TORCH=OFF -DOKTOPK_ENABLE_EXAMPLES=OFF -- $targets
  for suite in $suites; do
    keep "$place/build/tests/test_$suite"
  done
  [ -z "$nccl" ] || keep "$place/build/tests/nccl/test_nccl_one_rank"
  keep "$place/build/benchmarks/select_bench"
  keep "$place/build/benchmarks/device_cost"
}

# part NAME PERCENT COMMAND...: runs a part in that share of the time, notes how it ended and how long it took, and keeps
# all that it says in NAME.log. One at a time: processes that share a GPU wait for each other at every launch.
part() {
  name=$1
  most=$((seconds * $2 / 100))
  shift 2
  begun=$(date +%s)
  left=$((seconds - (begun - started)))
  if [ "$left" -le 0 ]; then
    echo "$name,not begun,0," >>"$results/parts.csv"
    return 0
  fi
  [ "$left" -lt "$most" ] || left=$most
  say "$name"
  status=0
  timeout -k 5 "$left" "$@" >"$results/$name.log" 2>&1 || status=$?
  case $status in
    0) ended=passed ;;
    124 | 137) ended="ended after $left s" ;;
    *) ended="failed ($status)" ;;
  esac
  told=$(grep -E '^(test cases:|All tests passed)' "$results/$name.log" | tail -n 1 | tr -s ' ,' ' ' || true)
  echo "$name,$ended,$(($(date +%s) - begun)),$told" >>"$results/parts.csv"
  [ "$status" -eq 0 ] || failed=$((failed + 1))
  [ "$status" -eq 0 ] || tail -n 25 "$results/$name.log"
}

run_programs() {
  nvidia-smi -L || fail "no GPU is seen by nvidia-smi"
  mkdir -p "$results"
  nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv >"$results/gpu.csv"
  LD_LIBRARY_PATH=$programs/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  echo "part,result,seconds,said" >"$results/parts.csv"
  failed=0
  for suite in $suites; do
    [ -x "$programs/test_$suite" ] || fail "there is no $programs/test_$suite: build it first, or leave it out of --suites"
    OKTOPK_TEST_SECONDS=120 part "test_$suite" 30 "$programs/test_$suite" --durations yes
  done
  # NCCL is where the linker finds it, or where the pip package of PyTorch has put it.
  if [ -x "$programs/test_nccl_one_rank" ]; then
    of_torch=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0])' 2>/dev/null || true)
    LD_LIBRARY_PATH=$LD_LIBRARY_PATH${of_torch:+:$of_torch/lib} part test_nccl_one_rank 10 "$programs/test_nccl_one_rank"
  fi
  has_torch=$(python3 -c 'import torch; print("yes" if torch.cuda.is_available() else "")' 2>/dev/null || true)
  for n in 14728266 133547324; do
    part "select_bench_$n" 10 "$programs/select_bench" --n "$n" --density 0.001,0.01 --benchmark_repetitions=30 \
      --benchmark_out_format=csv --benchmark_out="$results/select_$n.csv"
    [ -z "$has_torch" ] || part "torch_topk_$n" 10 python3 benchmarks/torch/time_topk.py --n "$n" --csv "$results/torch_topk_$n.csv"
    for ranks in 1 4; do
      part "device_cost_${n}_$ranks" 10 "$programs/device_cost" --n "$n" --ranks "$ranks" --steps 20 \
        --csv "$results/device_cost_${n}_$ranks.csv"
    done
  done
  cat "$results/parts.csv"
  say "The results are in $results"
  [ "$failed" -eq 0 ] || fail "$failed part(s) failed"
}

if [ "$does_build" = yes ]; then
  [ -n "$kokkos" ] || fail "--kokkos names the source of Kokkos; --run runs what was built"
  build_programs
fi
[ "$does_run" = no ] || run_programs
