#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# check_view_layout.sh NVCC: that a Kokkos is noticed of which this nvcc lays out a View in two ways, by the headers and
# by looking at device code, and that the same Kokkos without the mark passes both. The Kokkos is a stand-in.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."
nvcc=$1
scratch=$(mktemp -d)
trap 'rm -r "$scratch"' EXIT
echo '#include <oktopk/core/kokkos_ext/concepts.hpp>' >"$scratch/header.cu"

# compile FILE [OPTION...]: gives the status, and what was said in $scratch/said.
compile() {
  "$nvcc" -std=c++20 -x cu -arch=sm_80 -Itests/backends/view_layout -Iinclude -Werror all-warnings "$@" \
    -o "$scratch/object.o" >"$scratch/said" 2>&1
}

fail() {
  echo "$*:" >&2
  cat "$scratch/said" >&2
  exit 1
}

# must_say WORDS WHAT: the last compilation must have failed with these words.
must_say() {
  grep -q "$1" "$scratch/said" || fail "$2 is not told"
}

for file in cmake/view_layout.cpp "$scratch/header.cu"; do
  compile -DPLAIN_MDSPAN -c "$file" || fail "$file does not compile with an unmarked mdspan"
done

version=$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
# shellcheck disable=SC2086
set -- $version
if [ "$1" -lt 12 ] || { [ "$1" -eq 12 ] && [ "$2" -lt 9 ]; }; then
  echo "nvcc $1.$2 is older than the fault"
  exit 0
fi
! compile -c "$scratch/header.cu" || fail "the headers take a marked mdspan"
must_say "Kokkos_ENABLE_IMPL_VIEW_LEGACY=ON" "the cure"
# Whether a later nvcc has the fault is not known, and what is looked at is what it does.
if [ "$1.$2" = 13.0 ]; then
  ! compile -c cmake/view_layout.cpp || fail "device code is not looked at"
  must_say oktopk_views_lie_differently "the layout"
fi
