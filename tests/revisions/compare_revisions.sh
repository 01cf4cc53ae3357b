#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Compares what programs can observe of two revisions of the library: bits of results and saved states, messages and bytes
# of each phase, sentences of errors, for seeded calls of every algorithm, format, selector, partitioner and codec.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/../.."

usage() {
  echo "sh tests/revisions/compare_revisions.sh OLD [CASES]"
  echo "  OLD    a revision of git; the files of this checkout are compared with it"
  echo "  CASES  the number of calls, 440 unless given"
  echo "Flags of the compiler come from CXXFLAGS, libraries from LDLIBS (Debian's Kokkos unless given)."
}
case ${1:-} in
  -h | --help | '')
    usage
    [ -n "${1:-}" ]
    exit
    ;;
esac
cases=${2:-440}
scratch=$(mktemp -d)
trap 'git worktree remove --force "$scratch/old" 2>/dev/null || :; rm -r "$scratch"' EXIT
git worktree add --quiet --detach "$scratch/old" "$1"

# lines_of CHECKOUT NAME: the program is the same, the library that of the checkout.
lines_of() {
  catalogue=$1/include/oktopk/catalogue/impl.hpp
  [ -e "$catalogue" ] || catalogue=/dev/null # in older revisions each header has it
  # shellcheck disable=SC2086
  ${CXX:-c++} -std=c++20 -O1 -I"$1/include" -include "$catalogue" ${CXXFLAGS:--isystem /usr/include/trilinos} \
    tests/revisions/observed_calls.cpp -o "$scratch/$2.program" ${LDLIBS:--ltrilinos_kokkoscore -ldl}
  "$scratch/$2.program" "$cases" >"$scratch/$2"
}
lines_of "$scratch/old" before
lines_of . after
if ! diff "$scratch/before" "$scratch/after"; then
  echo "The revisions differ." >&2
  exit 1
fi
echo "$(wc -l <"$scratch/after") calls are the same in both revisions"
