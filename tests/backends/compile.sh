#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Compiles the library, and on request its tests and benchmarks, with the compiler of a device, which need not be
# there: for machines without one. See usage below; docs/backends.md says what it was run with.
set -eu
export LC_ALL=C
called_from=$(pwd)
cd "$(dirname "$0")/../.."

usage() {
  echo "sh tests/backends/compile.sh --cuda|--hip --kokkos FOLDER [--arch ARCH]... [FILE...]"
  echo "  --cuda           with nvcc (\$NVCC); for sm_80 and sm_90 unless --arch says otherwise"
  echo "  --hip            with hipcc (\$HIPCXX); for gfx90a unless --arch says otherwise"
  echo "  --kokkos FOLDER  a Kokkos for that device: where it is installed, or where it was configured to be built"
  echo "  FILE...          what to compile; all headers and tests/backends/instantiate.cpp unless named, and for"
  echo "                   tests, benchmarks and the engine of the device the words 'tests', 'benchmarks' and 'engine'"
}

fail() {
  echo "compile.sh: $*" >&2
  exit 1
}

device=
kokkos=
archs=
files=
while [ $# -gt 0 ]; do
  case $1 in
    --cuda | --hip) device=${1#--} ;;
    --kokkos | --arch)
      [ $# -ge 2 ] || fail "$1 needs a value"
      if [ "$1" = --kokkos ]; then
        kokkos=$(cd "$called_from" && cd "$2" && pwd) || fail "there is no folder $2"
      else
        archs="$archs $2"
      fi
      shift
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    tests) files="$files $(echo tests/select/test_*.cpp tests/exchange/test_*.cpp tests/algorithm/test_*.cpp \
      tests/tools/test_*.cpp)" ;;
    benchmarks) files="$files $(echo benchmarks/select_bench/*.cpp benchmarks/oktopk_bench/run_in_process.cpp \
      benchmarks/oktopk_bench/main.cpp)" ;;
    engine) files="$files $(echo src/engine/*.cpp) src/family.cpp,ok_topk src/family.cpp,top_k src/family.cpp,dense" ;;
    -*)
      usage >&2
      fail "unknown option $1"
      ;;
    *) files="$files $1" ;;
  esac
  shift
done
[ -n "$device" ] || fail "name the device: --cuda or --hip"
[ -n "$kokkos" ] || fail "name the Kokkos: --kokkos FOLDER"

# The folders with headers of Kokkos: one where it is installed, several where it was only configured.
if [ -e "$kokkos/include/Kokkos_Core.hpp" ]; then
  folders=$kokkos/include
else
  source=$(sed -n 's/^Kokkos_SOURCE_DIR:STATIC=//p' "$kokkos/CMakeCache.txt" 2>/dev/null) || true
  [ -n "$source" ] || fail "$kokkos is neither an installed nor a configured Kokkos"
  folders="$kokkos $kokkos/core/src $source/core/src $kokkos/containers/src $source/containers/src
    $source/tpls/desul/include $kokkos/tpls/desul/include $source/tpls/mdspan/include"
fi

work=build/compile-$device
mkdir -p "$work"
if [ -z "$files" ]; then
  # All public headers in one file: that each compiles by itself, the tests for the host show. Without those of torch,
  # whose headers (1.13) nvcc and hipcc do not take as C++20. Those of NCCL want its header, or RCCL's, as CPATH may have
  # it.
  without='^oktopk/torch[./]'
  if ! printf '%s\n' '#if !__has_include(<nccl.h>) && !__has_include(<rccl/rccl.h>)' '#error' '#endif' |
    c++ -E -x c++ - >"$work/nccl.log" 2>&1; then
    echo "no nccl.h and no rccl/rccl.h, so the headers that want one are left out"
    without='^oktopk/\(torch\|nccl\)[./]'
  fi
  (cd include && find oktopk -name '*.hpp' | grep -v "$without" | sort | sed 's/.*/#include <&>/') >"$work/all_headers.cpp"
  files="$work/all_headers.cpp tests/backends/instantiate.cpp"
fi

set -- -std=c++20 -O1 -Iinclude -Itests -Ibenchmarks -Isrc -DOKTOPK_TESTS_WITH_MPI -DOKTOPK_ENGINE_ON_DEVICE
for folder in $folders; do
  [ ! -d "$folder" ] || set -- "$@" -isystem "$folder"
done
for flag in $(mpicxx -show | tr ' ' '\n' | grep '^-I' | sed 's/^-I//'); do
  set -- "$@" -isystem "$flag"
done
# What only some versions have, and what Open MPI's retired C++ bindings would bring.
set -- "$@" -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX
case $device in
  cuda)
    for arch in ${archs:-sm_80 sm_90}; do
      set -- "$@" -gencode "arch=compute_${arch#sm_},code=$arch"
    done
    # Captures of `this` compile and break on a device: its memory is the host's.
    set -- "${NVCC:-nvcc}" -x cu --extended-lambda -Wext-lambda-captures-this -Werror all-warnings \
      -Xcompiler -Wall,-Wextra,-Wshadow,-Werror "$@"
    ;;
  hip)
    for arch in ${archs:-gfx90a}; do
      set -- "$@" "--offload-arch=$arch"
    done
    set -- "${HIPCXX:-hipcc}" -x hip -Wall -Wextra -Wshadow -Werror "$@"
    ;;
esac

# With a Kokkos that nvcc lays out in two ways everything compiles, and reads garbage on a device.
if [ "$device" = cuda ]; then
  if ! "$@" -c cmake/view_layout.cpp -o "$work/view_layout.o" >"$work/view_layout.log" 2>&1; then
    cat "$work/view_layout.log" >&2
    ! grep -q oktopk_views_lie_differently "$work/view_layout.log" ||
      fail "with this Kokkos and nvcc, kernels would read garbage behind a Kokkos::View: take Kokkos 4.7.02 or later, or" \
        "configure this one (up to 5.2) with -DKokkos_ENABLE_IMPL_VIEW_LEGACY=ON; docs/backends.md says why"
    fail "the layout of Kokkos::View in device code could not be looked at"
  fi
fi

failed=0
for file in $files; do
  object=$work/$(echo "$file" | tr '/' '-').o
  before=$(date +%s)
  family= # of algorithms, each of which is an object of the same source
  case $file in
    *,*) family=-DOKTOPK_FAMILY=${file#*,} ;;
  esac
  # Programs have their own folders for what they include.
  if "$@" "-I$(dirname "$file")" ${family:+"$family"} -c "${file%,*}" -o "$object" >"$object.log" 2>&1; then
    echo "compiled $file ($(($(date +%s) - before)) s)"
  else
    failed=$((failed + 1))
    echo "FAILED $file:"
    cat "$object.log"
  fi
done
[ "$failed" -eq 0 ] || fail "$failed of the files did not compile"
