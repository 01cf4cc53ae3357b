#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh benchmarks/compare/run.sh [OPTION...] [-- OPTION...]: every scheme on the same gradients in one table, see --help.
# Builds what it needs; installs what is missing on Debian and Ubuntu.
set -eu

caller=$(pwd)
mpi_of_caller=$(env | sed -n '/^OMPI_MCA_[A-Za-z_]*=[^ ]*$/p')
cd "$(dirname "$0")/../.."
# shellcheck source=cmake/setup.sh
. cmake/setup.sh
# shellcheck source=benchmarks/shared/functions.sh
. benchmarks/shared/functions.sh

here=benchmarks/compare
ranks=8
length=1048576
input=
density=0.01
algorithms=
codecs=
steps=
warmup=3
rate=
latency=50
mpi=no
launcher=
bench=
folder=build/compare
csv=
rows=
plot=
given_ranks=
given_length=
given_latency=

usage() {
  cat <<TEXT
sh benchmarks/compare/run.sh [OPTION...] [-- OPTION...]

Runs every scheme on the same gradients and prints one table: words sent, messages, time in selection and in
communication, and how much of the true sum arrives.

  --ranks P           (default: $ranks)
  --length N          of synthetic gradients (default: $length)
  --input PATTERN[,PATTERN...]
                      your own gradients instead: files of raw little-endian float32, {rank} stands for the rank;
                      several are successive iterations
  --density D         share of the entries to select, in (0, 1] (default: $density)
  --algorithms LIST   schemes, separated by commas; "all" for all that oktopk_bench knows (default: all but four of
                      the five textbook ones, of which there is ring_chunked)
  --codecs LIST       ring_chunked and recursive_doubling, where they are among the schemes, also with these codecs:
                      identity, bfloat16, block_float, zfp; with bits a value as in block_float:8,block_float:12
  --steps S           iterations to measure (default: 10, or one for each pattern)
  --warmup W          iterations before these that are not measured (default: $warmup)
  --rate RATE         add the time that the words take on links of RATE, such as 100mbit, 1gbit or 10gbit
  --latency US        and that of each message, in microseconds (default: $latency)
  --mpi               MPI ranks on this machine instead of ranks that take turns in one process
  --launcher COMMAND  MPI ranks wherever COMMAND starts them: 'mpirun -n 64 --hostfile hosts', 'srun -n 64'
  --csv FILE          the table (default: $folder/schemes.csv)
  --rows FILE         one row per scheme and iteration as well
  --plot FILE         PNG, or what else matplotlib knows; "none" for none (default: $folder/schemes.png)
  --bench PATH        the program oktopk_bench (default: built under build/)
  -- OPTION...        what follows goes to the benchmark as it is
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
    --ranks)
      ranks=$(value "$@")
      given_ranks=yes
      ;;
    --length)
      length=$(value "$@")
      given_length=yes
      ;;
    --input) input=$(paths "$@") ;;
    --density) density=$(value "$@") ;;
    --algorithms) algorithms=$(value "$@") ;;
    --codecs) codecs=$(value "$@") ;;
    --steps) steps=$(value "$@") ;;
    --warmup) warmup=$(value "$@") ;;
    --rate) rate=$(value "$@") ;;
    --latency)
      latency=$(value "$@")
      given_latency=yes
      ;;
    --launcher) launcher=$(value "$@") ;;
    --csv) csv=$(paths "$@") ;;
    --rows) rows=$(paths "$@") ;;
    --plot) plot=$(paths "$@") ;;
    --bench) bench=$(paths "$@") ;;
    --mpi)
      mpi=yes
      shift
      continue
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *) fail "there is no option \"$1\"; --help lists them" ;;
  esac
  shift 2
done

whole --ranks "$ranks"
whole --length "$length"
if [ -n "$input" ] && [ -n "$given_length" ]; then
  fail "--length and --input exclude each other"
fi
if [ -n "$launcher" ]; then
  [ -z "$given_ranks" ] || fail "--launcher says how many ranks there are, so --ranks cannot"
  mpi=yes
fi
if [ $mpi = yes ] && [ -n "$rate" ]; then
  fail "--rate is for ranks in one process; times of MPI have a network in them"
fi
if [ -z "$rate" ] && [ -n "$given_latency" ]; then
  fail "--latency goes with --rate"
fi
[ -z "$rate" ] || rate --rate "$rate"
case $latency in
  '' | *[!0-9.]* | *.*.* | .) fail "--latency must be a number of microseconds, not \"$latency\"" ;;
esac

outputs "$folder" schemes
[ -z "$rows" ] || writable "$rows"

packages() {
  if [ -z "$bench" ]; then
    need g++ c++
    need cmake cmake
    need ninja-build ninja
    need libcli11-dev '/usr/include/CLI/CLI.hpp'
    [ -n "${Kokkos_ROOT:-}" ] || need libtrilinos-kokkos-dev '/usr/include/trilinos/Kokkos_Core.hpp'
    if [ $mpi = yes ]; then
      need libopenmpi-dev mpicxx.openmpi
      need openmpi-bin mpirun.openmpi
    fi
  fi
  need_matplotlib "$plot"
}
install_missing packages
if [ -z "$bench" ]; then
  # Half the time of the build is MPI's half of the program.
  with_mpi=-DOKTOPK_ENABLE_MPI=OFF
  where=build/benchmarks
  if [ $mpi = yes ]; then
    with_mpi=-DMPI_CXX_COMPILER=mpicxx.openmpi
    where=build/benchmarks-mpi
  fi
  build $where -DCMAKE_BUILD_TYPE=Release $with_mpi -DOKTOPK_ENABLE_TESTS=OFF -DOKTOPK_ENABLE_EXAMPLES=OFF \
    -- oktopk_bench
  bench=$where/benchmarks/oktopk_bench
fi
{ [ -f "$bench" ] && [ -x "$bench" ]; } || fail "\"$bench\" is no program"
case $algorithms in
  all) algorithms=$(schemes_of "$bench") ;;
  # They are to be compared with each other, or with one of them.
  '') algorithms=$(without "$(schemes_of "$bench")" ring ring_pipelined halving_doubling recursive_doubling) ;;
esac
[ -n "$algorithms" ] || fail "\"$bench\" does not say which schemes it knows; name some with --algorithms"
coded=
for each in $(printf '%s\n' "$algorithms" | tr , ' '); do
  case $each in
    ring_chunked | recursive_doubling) coded=$coded${coded:+,}$each ;;
  esac
done
# Without a rate it is that of 8 bits.
repeated=$(printf '%s\n' "$codecs" | tr , '\n' | sed 's/:8$//' | sort | uniq -d | head -n 1)
[ -z "$repeated" ] || fail "--codecs names \"$repeated\" twice"
if [ -n "$codecs" ] && [ -z "$coded" ]; then
  fail "--codecs is for ring_chunked and recursive_doubling, neither of which --algorithms names"
fi

# codec_options NAME[:BITS]: as the benchmark wants them.
codec_options() {
  printf '%s %s' --codec "${1%%:*}"
  case $1 in
    *:*) printf ' %s %s' --rate "${1#*:}" ;;
  esac
}
# What is wrong with a codec is told at once, not after minutes of measuring.
for each in $(printf '%s\n' "$codecs" | tr , ' '); do
  # shellcheck disable=SC2046
  "$bench" --in-process 1 --algorithm "$coded" --length 1 --k 1 --steps 1 $(codec_options "$each") >/dev/null ||
    fail "\"$each\" of --codecs is none of the benchmark's"
done

make_scratch

set -- --density "$density" --warmup "$warmup" --quality --csv "$scratch/some.csv" "$@"
[ -z "$steps" ] || set -- --steps "$steps" "$@"
if [ -n "$input" ]; then
  set -- --input "$input" "$@"
else
  set -- --length "$length" "$@"
fi
# measure COMMAND...: with what the benchmark says where it fails, and nothing where it does not.
measure() {
  say "Measuring$1"
  shift
  "$@" >"$scratch/output" || {
    cat "$scratch/output" >&2
    fail "the measurement failed"
  }
}
if [ $mpi = no ]; then
  turns=1
elif [ -n "$launcher" ]; then
  turns=0
  # What cmake/setup.sh sets for one machine hinders on several.
  unset OMPI_MCA_rmaps_base_oversubscribe OMPI_MCA_mpi_yield_when_idle OMPI_MCA_plm
  unset OMPI_MCA_btl_vader_single_copy_mechanism
else
  turns=0
  mpirun=$(command -v mpirun.openmpi || command -v mpirun || :)
  [ -n "$mpirun" ] || fail "--mpi needs mpirun; --launcher names another command"
fi
# run_ranks TEXT OPTION...: the benchmark with these options; adds its rows to those that are there.
run_ranks() {
  with=$1
  shift
  if [ $mpi = no ]; then
    measure "$with, on $ranks ranks that take turns" "$bench" --in-process "$ranks" "$@"
  elif [ -n "$launcher" ]; then
    # shellcheck disable=SC2086
    measure "$with, started by $launcher" env $mpi_of_caller $launcher "$bench" "$@"
  else
    measure "$with, on $ranks ranks of MPI" "$mpirun" -n "$ranks" "$bench" "$@"
  fi
  if [ -e "$scratch/rows.csv" ]; then
    sed 1d "$scratch/some.csv" >>"$scratch/rows.csv"
  else
    mv "$scratch/some.csv" "$scratch/rows.csv"
  fi
}
run_ranks "" --algorithm "$algorithms" "$@"
for each in $(printf '%s\n' "$codecs" | tr , ' '); do
  # shellcheck disable=SC2046
  run_ranks " with $each" --algorithm "$coded" $(codec_options "$each") "$@"
done

# column NAME: of the first row.
column() {
  awk -F, -v name="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == name) at = i } NR == 2 { print $at }' \
    "$scratch/rows.csv"
}
ranks=$(column ranks)
length=$(column length)
k=$(awk -v n="$length" -v d="$density" 'BEGIN { k = int(n * d + 0.5); print (k < 1 ? 1 : (k > n ? n : k)) }')
processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)
title="$ranks ranks, n = $length, k = $k"
[ -z "$rate" ] || title="$title, links of $rate, $latency us a message"
[ -z "$input" ] || title="$title, gradients given"
printf '\n%s; %s cores%s, %s:\n\n' "$title" "$(nproc)" "${processor:+ ($processor)}" "$(date +%Y-%m-%d)"
awk -f benchmarks/shared/rows.awk -f $here/table.awk -v csv="$scratch/schemes.csv" -v k="$k" -v turns=$turns \
  -v rate="$rate" -v latency="$latency" "$scratch/rows.csv"
cp "$scratch/schemes.csv" "$csv"
[ -z "$rows" ] || cp "$scratch/rows.csv" "$rows"
[ "$plot" = none ] || "$(python_with_matplotlib)" $here/plot.py "$csv" "$plot" "$title"
say "Wrote $csv${rows:+, $rows}$([ "$plot" = none ] || printf ', %s' "$plot")"
