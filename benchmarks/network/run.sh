#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# sh benchmarks/network/run.sh [OPTION...] [-- OPTION...]: measures the schemes on an emulated cluster, see --help.
#
# Everything that makes up the cluster lives in namespaces of its own (network, mounts, processes), which the kernel
# takes down with the last process in them, and nothing in them is visible outside. So there is nothing to undo after a
# failure, Ctrl-C or even kill -9 (which leaves a small folder in /tmp), and nothing that was there before is touched.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)

rate=1gbit
ranks=8
length=14728266
density=0.01
algorithms=
steps=10
warmup=3
rounds=1
verify=no
bench=
csv=
plot=

usage() {
  cat <<TEXT
sh benchmarks/network/run.sh [OPTION...] [-- OPTION...]

Measures schemes of the library on an emulated cluster: each rank in a network namespace of its own, joined to a
bridge by a link of a chosen rate, with MPI over TCP between them. Needs root, iproute2 and Open MPI or MPICH. Leaves
nothing behind.

  --rate RATE         of each link, each way: 100mbit, 1gbit or 10gbit (default: $rate)
  --ranks P           from 2 to 200 (default: $ranks)
  --length N          of the gradient (default: $length, that of VGG-16)
  --density D         share of the entries to select, in (0, 1] (default: $density)
  --algorithms LIST   schemes to measure, separated by commas (default: all that the benchmark knows); what can
                      code its messages also as NAME:CODEC or NAME:CODEC:LEVEL, as in ring_chunked:block_float:message
  --steps S           iterations to measure (default: $steps)
  --warmup W          iterations before these that are not measured (default: $warmup)
  --rounds R          measure all schemes in turn R times, which spreads what else the machine does (default: $rounds)
  --verify            check every result against an independent reference; takes its time, between the iterations
  --bench PATH        the program oktopk_bench, for Open MPI or MPICH (default: the newest under build/ for Open MPI)
  --csv FILE          write one row per scheme and iteration to FILE
  --plot FILE         draw the medians (PNG, or what else matplotlib knows by the name's end)
  -- OPTION...        what follows goes to the benchmark as it is
TEXT
}

fail() {
  printf 'run.sh: %s\n' "$*" >&2
  exit 1
}

# shellcheck source=benchmarks/shared/functions.sh
. "$here/../shared/functions.sh"

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
    --rate) rate=$(value "$@") ;;
    --ranks) ranks=$(value "$@") ;;
    --length) length=$(value "$@") ;;
    --density) density=$(value "$@") ;;
    --algorithms) algorithms=$(value "$@") ;;
    --steps) steps=$(value "$@") ;;
    --warmup) warmup=$(value "$@") ;;
    --rounds) rounds=$(value "$@") ;;
    --bench) bench=$(value "$@") ;;
    --csv) csv=$(value "$@") ;;
    --plot) plot=$(value "$@") ;;
    --verify)
      verify=yes
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

case $rate in
  100mbit | 1gbit | 10gbit) ;;
  *) fail "--rate must be 100mbit, 1gbit or 10gbit, not \"$rate\"" ;;
esac
case $ranks in
  '' | *[!0-9]* | ????*) fail "--ranks must be a number from 2 to 200, not \"$ranks\"" ;;
esac
if [ "$ranks" -lt 2 ] || [ "$ranks" -gt 200 ]; then
  fail "--ranks must be a number from 2 to 200, not \"$ranks\""
fi
whole --rounds "$rounds"

[ "$(id -u)" -eq 0 ] || fail "needs root, to make network namespaces: run it with sudo"

# require PACKAGE COMMAND
require() {
  command -v "$2" >/dev/null 2>&1 || fail "needs $2: install $1 (Debian, Ubuntu: apt-get install $1)"
}
require iproute2 ip
require iproute2 tc
require util-linux unshare
require util-linux nsenter
require util-linux setpriv

# mpi_of PROGRAM: the MPI that it was built with, or nothing. What Debian calls libmpich.so.12 is libmpi.so.12 elsewhere.
mpi_of() {
  ldd "$1" 2>/dev/null | sed -n 's/^\t*libmpi\.so\.[2-9].*/open_mpi/p; s/^\t*libmpi\(ch\)*\.so\.1[2-9].*/mpich/p'
}
if [ -z "$bench" ]; then
  bench=$(
    find "$root/build" -type f -name oktopk_bench -perm -u+x -printf '%T@ %p\n' 2>/dev/null | sort -rn |
      while read -r _ each; do
        if [ "$(mpi_of "$each")" = open_mpi ]; then
          printf '%s\n' "$each"
          break
        fi
      done
  )
  [ -n "$bench" ] || fail "found no oktopk_bench for Open MPI under $root/build: build one, or name it with --bench"
fi
{ [ -f "$bench" ] && [ -x "$bench" ]; } || fail "\"$bench\" is no program"
mpi=$(mpi_of "$bench")
launcher=
case $mpi in
  open_mpi)
    for each in mpirun.openmpi mpirun; do
      if command -v "$each" >/dev/null 2>&1 && "$each" --version 2>/dev/null | grep -q 'Open MPI'; then
        launcher=$(command -v "$each")
        break
      fi
    done
    [ -n "$launcher" ] || fail "needs mpirun of Open MPI: install openmpi-bin (Debian, Ubuntu: apt-get install openmpi-bin)"
    ;;
  mpich)
    require mpich mpiexec.hydra
    launcher=$(command -v mpiexec.hydra)
    ;;
  *) fail "\"$bench\" was built neither with Open MPI nor with MPICH" ;;
esac
bench=$(cd "$(dirname "$bench")" && pwd)/$(basename "$bench")

if [ -z "$algorithms" ]; then
  algorithms=$(schemes_of "$bench")
  [ -n "$algorithms" ] || fail "\"$bench\" does not say which schemes it knows; name some with --algorithms"
fi

for file in "$csv" "$plot"; do
  [ -z "$file" ] || writable "$file"
done
python=$([ -z "$plot" ] || python_with_matplotlib)
if [ -n "$plot" ] && [ -z "$python" ]; then
  fail "--plot needs matplotlib: install python3-matplotlib (Debian, Ubuntu: apt-get install python3-matplotlib)"
fi

# `setpriv` and `--kill-child` tie the life of the cluster to that of this shell, whatever ends it.
in_namespaces() {
  exec setpriv --pdeathsig KILL unshare --mount --net --pid --fork --kill-child --mount-proc "$@"
}
(in_namespaces true) 2>/dev/null || fail "may not make namespaces here: a container must be privileged for that"

scratch=$(mktemp -d /tmp/oktopk.XXXXXX)
cluster=
# shellcheck disable=SC2317
end() {
  [ -z "$cluster" ] || kill -KILL "$cluster" 2>/dev/null || :
  rm -rf "$scratch"
}
trap end EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

[ $verify = yes ] || set -- --no-verify "$@"
printf 'Measuring %s\n' "$bench"
# In the background, because a shell heeds a signal at once in `wait` only.
in_namespaces sh "$here/cluster.sh" "$scratch" "$rate" "$ranks" "$mpi" "$launcher" "$rounds" "$algorithms" \
  "$bench" --length "$length" --density "$density" --steps "$steps" --warmup "$warmup" "$@" &
cluster=$!
status=0
wait "$cluster" || status=$?
cluster=

# What was measured before a failure counts as well.
if [ -s "$scratch/rows.csv" ]; then
  [ -z "$csv" ] || cat "$scratch/rows.csv" >"$csv"
  processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -n 1)
  title="$ranks ranks, links of $rate, n = $length, density $density"
  printf '\n%s; emulated on %s cores%s, %s:\n\n' "$title" "$(nproc)" "${processor:+ ($processor)}" "$(date +%Y-%m-%d)"
  awk -f "$here/../shared/rows.awk" -f "$here/table.awk" -v rate="$rate" "$scratch/rows.csv"
  [ -z "$plot" ] || "$python" "$here/plot.py" "$scratch/rows.csv" "$plot" "$title"
fi
exit "$status"
