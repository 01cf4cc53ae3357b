#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# cluster.sh SCRATCH RATE RANKS MPI LAUNCHER ROUNDS LAUNCHES [ARGUMENT...]: joins RANKS network namespaces by links of RATE
# and runs programs in them, ROUNDS times for each of the LAUNCHES in turn. A launch is a line
# NAME|PROGRAM|ALGORITHM|MORE|MPI: the program, what it gets besides the ARGUMENTs, and options for the launcher of MPI.
# Where the program is "gloo", MORE are all arguments of Gloo's benchmark ($GLOO_BENCHMARK). Rows go to SCRATCH/NUMBER.csv,
# what Gloo's rank 0 prints goes to SCRATCH/NUMBER.gloo; NUMBER counts from 0 on. Only for run.py, which starts it in
# namespaces that end with it: its own network namespace is the switch, out of reach of any real network.
set -eu
export LC_ALL=C

here=$(cd "$(dirname "$0")" && pwd)
scratch=$1
rate=$2
ranks=$3
mpi=$4
launcher=$5
rounds=$6
launches=$7
shift 7
started=$(date +%s)

fail() {
  printf 'run.py: %s\n' "$*" >&2
  exit 1
}

# The first process of a process namespace ignores signals that it does not catch.
trap 'exit 143' HUP INT TERM

# Names of the namespaces and what Open MPI writes go to memory that is private, and gone with the mount namespace.
private=$scratch/private
mkdir "$private"
mount -t tmpfs tmpfs "$private"
export TMPDIR="$private"

network=10.77.77
ip link set lo up
ip link add switch type bridge
ip address add "$network.254/24" dev switch
ip link set switch up

# A link that was idle must not be given its idle time as bandwidth, so no burst is longer than the largest packet that
# a stack hands down in one piece, or a fraction of a millisecond that timers need. The queue holds 100 ms of traffic.
set_bursts() {
  case $rate in
    100mbit) packet=8192 burst=10k ;;
    1gbit) packet=65536 burst=72k ;;
    *) packet=65536 burst=256k ;;
  esac
  if [ -n "${FOLLOW_RATE-}" ]; then
    packet=8192 # a connection keeps the size that it began with, and no packet may be longer than a later burst
  fi
}
set_bursts

# shape COMMAND...: limits an interface; COMMAND is `tc qdisc add dev NAME root`, perhaps run elsewhere.
shape() {
  "$@" tbf rate "$rate" burst "$burst" latency 100ms || fail "the kernel cannot limit the rate of a link (sch_tbf)"
}

hosts=
rank=1
while [ "$rank" -le "$ranks" ]; do
  namespace=$private/rank$rank
  : >"$namespace"
  unshare --net="$namespace" true
  ip link add "port$rank" gso_max_size "$packet" type veth peer name cluster gso_max_size "$packet"
  ip link set cluster netns "$namespace"
  ip link set "port$rank" master switch up
  shape tc qdisc add dev "port$rank" root
  nsenter --net="$namespace" ip link set lo up
  nsenter --net="$namespace" ip address add "$network.$rank/24" dev cluster
  nsenter --net="$namespace" ip link set cluster up
  shape nsenter --net="$namespace" tc qdisc add dev cluster root
  hosts=$hosts,$network.$rank
  rank=$((rank + 1))
done

# LINK_DOWN="RANK FROM UNTIL" in the environment (seconds from now on): the link of a rank, from 1 on, is down for that
# time. For tests of what happens then.
break_link() {
  sleep "$2"
  ip link set "port$1" down
  sleep "$(($3 - $2))"
  ip link set "port$1" up
}
if [ -n "${LINK_DOWN-}" ]; then
  # shellcheck disable=SC2086
  break_link $LINK_DOWN &
fi

# With FOLLOW_RATE in the environment all links take the rate that SCRATCH/rate has, whenever that is another one than
# before, and SCRATCH/rate.now tells it then. So a program can run while the network becomes another one.
follow_rate() {
  while sleep 0.05; do
    wanted=
    { read -r wanted <"$scratch/rate"; } 2>/dev/null || continue
    if [ -n "$wanted" ] && [ "$wanted" != "$rate" ]; then
      rate=$wanted
      set_bursts
      each=1
      while [ "$each" -le "$ranks" ]; do
        namespace=$private/rank$each
        ip link set "port$each" gso_max_size "$packet"
        nsenter --net="$namespace" ip link set cluster gso_max_size "$packet"
        shape tc qdisc replace dev "port$each" root
        shape nsenter --net="$namespace" tc qdisc replace dev cluster root
        each=$((each + 1))
      done
      echo "$rate" >"$scratch/rate.now"
    fi
  done
}
if [ -n "${FOLLOW_RATE-}" ]; then
  follow_rate &
fi

# What MPI's launcher takes for a remote shell: HOST COMMAND... Each host has a folder of its own for temporary files, or
# the daemons would overwrite each other's, and sees its own interfaces only in /sys, where UCX looks for them.
remote_shell=$private/remote_shell
cat >"$remote_shell" <<TEXT
#!/bin/sh
namespace=$private/rank\${1##*.}
shift
mkdir -p "\$namespace.tmp"
TMPDIR=\$namespace.tmp exec nsenter --net="\$namespace" unshare --mount sh -c "mount -t sysfs sysfs /sys && \$*"
TEXT
chmod +x "$remote_shell"

export OMP_NUM_THREADS=1 OMP_PROC_BIND=false OPENBLAS_NUM_THREADS=1

# Ranks outnumber the cores here: one that waits must yield, or every message waits for a time slice. That takes daemons
# that stay in this session, for Linux schedules sessions as groups (sched_autogroup), and yielding passes the core on
# within the group only. For the same reason a rank is given one thread.
# OPEN_MPI_OPTIONS in the environment are more options for it.
start_open_mpi() {
  # shellcheck disable=SC2086
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$launcher" -n "$ranks" --host "${hosts#,}" --bind-to none \
    --mca plm rsh --mca plm_rsh_agent "$remote_shell" --mca plm_rsh_no_tree_spawn 1 \
    --mca oob_tcp_if_include switch,cluster --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include cluster \
    --mca mpi_yield_when_idle 1 --leave-session-attached ${OPEN_MPI_OPTIONS-} "$@"
}

# MPICH over UCX, as Debian builds it. Ranks that have written all their results may then wait for each other for good in
# MPI_Finalize, where UCX closes connections that were never used (MPICH 4.0.2); they are not waited for.
start_mpich() {
  LD_PRELOAD="$private/yield_when_idle.so" UCX_TLS=tcp,self UCX_NET_DEVICES=cluster \
    "$launcher" -launcher rsh -launcher-exec "$remote_shell" -localhost "$network.254" -hosts "${hosts#,}" \
    -ppn 1 -n "$ranks" "$@" &
  running=$!
  until [ -s "$private/rows.csv" ] || ! kill -0 $running 2>/dev/null; do
    sleep 0.5
  done
  spare=20
  while [ $spare -gt 0 ] && kill -0 $running 2>/dev/null; do
    sleep 0.5
    spare=$((spare - 1))
  done
  if [ $spare -gt 0 ]; then
    wait $running
  else
    kill -TERM $running
    wait $running || :
    : >"$private/errors" # of the processes that this ended
  fi
}

if [ "$mpi" = mpich ]; then
  c++ -O2 -fPIC -shared -o "$private/yield_when_idle.so" "$here/yield_when_idle.cpp" -ldl ||
    fail "needs a C++ compiler for MPICH: install g++ (Debian, Ubuntu: apt-get install g++)"
fi

# start_gloo FILE ARGUMENT...: Gloo's benchmark, which has no launcher; what rank 0 prints goes to FILE.
start_gloo() {
  file=$1
  shift
  store=$(mktemp -d -p "$private")
  started_ranks=
  rank=0
  while [ "$rank" -lt "$ranks" ]; do
    nsenter --net="$private/rank$((rank + 1))" "$GLOO_BENCHMARK" --size "$ranks" --rank "$rank" --shared-path "$store" \
      --prefix gloo --transport tcp --tcp-device cluster "$@" >"$private/gloo.$rank" 2>&1 &
    started_ranks="$started_ranks $!"
    rank=$((rank + 1))
  done
  for each_rank in $started_ranks; do
    wait "$each_rank" || { cat "$private/gloo.0" >&2 && fail "Gloo's benchmark failed"; }
  done
  mv "$private/gloo.0" "$file"
}

# measure NUMBER NAME PROGRAM ALGORITHM MORE MPI [ARGUMENT...]
measure() {
  number=$1
  name=$2
  program=$3
  algorithm=$4
  more=$5
  mpi_options=$6
  shift 6
  if [ "$program" = gloo ]; then
    # shellcheck disable=SC2086
    start_gloo "$scratch/$number.gloo" $more
    return
  fi
  status=0
  # shellcheck disable=SC2086
  "start_$mpi" $mpi_options "$program" "$@" $more --algorithm "$algorithm" --csv "$private/rows.csv" >"$private/output" \
    2>"$private/errors" || status=$?
  # A launcher that loses a race with its own child says so, to no effect.
  grep -v 'plm:rsh: Warning: setpgid' "$private/errors" >&2 || :
  if [ $status -ne 0 ] || [ ! -s "$private/rows.csv" ]; then
    cat "$private/output" >&2
    fail "$name could not be measured"
  fi
  # Programs that another MPI's launcher started are alone, each of them. Names in quotes may have commas.
  if grep -q '^algorithm,ranks,' "$private/rows.csv" && sed '1d; s/^"[^"]*"/name/' "$private/rows.csv" | cut -d , -f 2 | grep -qvx "$ranks"; then
    fail "$name did not run on $ranks ranks together"
  fi
  mv "$private/rows.csv" "$scratch/$number.csv"
}

all=$((rounds * $(printf '%s\n' "$launches" | wc -l)))
done=0
round=1
while [ "$round" -le "$rounds" ]; do
  while IFS='|' read -r name program algorithm more mpi_options <&3; do
    printf '[%4d s] %s (%d of %d)\n' "$(($(date +%s) - started))" "$name" "$((done + 1))" "$all"
    measure "$done" "$name" "$program" "$algorithm" "$more" "$mpi_options" "$@" 3<&-
    done=$((done + 1))
  done 3<<LINES
$launches
LINES
  round=$((round + 1))
done
