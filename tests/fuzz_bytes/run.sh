#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# Runs fuzzers of bytes one after the other, each with its seeds, among them what was found before:
#
#   run.sh PROGRAMS LIMIT [TARGET...]
#
# PROGRAMS is the folder with the programs fuzz_TARGET; LIMIT is --seconds N or --runs N, for each; without a TARGET all
# are run. Prints a line each and the end of what a fuzzer said that failed; what it failed with lies in the current
# folder, as TARGET.crash-... Fails where any does. Inputs that reach new code are kept in the folder that FUZZ_CORPUS
# names, for the next time; without it they are forgotten.
set -eu

[ $# -ge 3 ] || { echo "run.sh PROGRAMS --seconds N | --runs N [TARGET...]" >&2; exit 2; }
programs=$1
case $2 in
  --seconds) limit="-max_total_time=$3" ;;
  --runs) limit="-runs=$3" ;;
  *) echo "run.sh PROGRAMS --seconds N | --runs N [TARGET...]" >&2; exit 2 ;;
esac
shift 3
if [ $# -eq 0 ]; then
  for program in "$programs"/fuzz_*; do
    [ -f "$program" ] && [ -x "$program" ] && set -- "$@" "${program##*/fuzz_}"
  done
fi
[ $# -gt 0 ] || { echo "run.sh: no fuzzers in $programs" >&2; exit 2; }

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OMP_PROC_BIND=false
failed=0
for target in "$@"; do
  corpus=${FUZZ_CORPUS:-$scratch}/$target
  mkdir -p "$corpus" "$scratch/seeds/$target"
  "$programs/fuzz_$target" --write-seeds "$scratch/seeds/$target"
  begin=$(date +%s)
  if "$programs/fuzz_$target" -seed=1 "$limit" -max_len=4096 -timeout=30 -rss_limit_mb=2048 \
      -artifact_prefix="$target." "$corpus" "$scratch/seeds/$target" >"$scratch/said" 2>&1; then
    # libFuzzer and the main program of our own each say in their last line how many there were.
    echo "$target: $(grep -E '^Done|damaged ones$' "$scratch/said" | tail -n 1) ($(($(date +%s) - begin)) s)"
  else
    failed=1
    echo "$target: FAILED"
    tail -n 60 "$scratch/said"
  fi
done
exit $failed
