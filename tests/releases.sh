#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What a newcomer types, on other releases of Debian: each in a root of its own, made by debootstrap and kept. For
# maintainers, not for CI. See usage below.
set -eu
if [ -z "${OKTOPK_OWN_MOUNTS:-}" ] && [ "$(id -u)" -eq 0 ]; then # so that no mount outlives this script, however it ends
  OKTOPK_OWN_MOUNTS=1 exec unshare --mount --propagation private sh "$0" "$@"
fi
called_from=$(pwd)
cd "$(dirname "$0")/.."
. cmake/setup.sh

usage() {
  echo "sh tests/releases.sh [--build DIR] [--only WHAT,...] [--jobs N] [--write] [--list] [RELEASE...]"
  echo "  RELEASE        bookworm (Debian 12), trixie (13), forky or sid (unstable); trixie and sid unless given"
  echo "  --only WHAT    of examples (sh examples/run.sh), quick (sh tests/run.sh), full (what --full adds), torch (--torch),"
  echo "                 kokkos (quick once more, with libkokkos-dev where the release has it), clang (quick once more, with the"
  echo "                 newest Clang of the release); else all"
  echo "  --build DIR    keeps the roots there, of 4 to 8 GB each; else in build/releases. Delete them with"
  echo "                 rm -rf --one-file-system"
  echo "  --jobs N       compiles and runs so much at a time; as many as cores unless given"
  echo "  --write        writes the table of docs/backends.md of the last runs"
  echo "  --list         prints that table"
  echo "The last commit is what is tested. Needs root, debootstrap and the network. On two cores a release takes about 2 hours:"
  echo "5 minutes for the root, 6 for examples, 15 for quick, 35 for full, 20 for torch, 16 each for kokkos and clang."
}

everything="examples quick full torch kokkos clang"
only=$everything
releases=
folder=build/releases
jobs=
table=no
while [ $# -gt 0 ]; do
  case $1 in
    --only | --build | --jobs) [ $# -ge 2 ] || fail "$1 needs an argument" ;;
  esac
  case $1 in
    --only) only=$(echo "$2" | tr ',' ' ') && shift ;;
    --build) folder=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --write) table=written ;;
    --list) table=printed ;;
    -h | --help) usage && exit 0 ;;
    bookworm | trixie | forky | sid) releases="$releases $1" ;;
    *) usage >&2 && fail "unknown argument $1" ;;
  esac
  shift
done
for each in $only; do
  case " $everything " in
    *" $each "*) ;;
    *) fail "--only knows $everything, and not $each" ;;
  esac
done
choose_builds "$folder"
builds=$(cd "$builds" && pwd)

# rows: of every root here, from what its last runs have noted.
rows() {
  echo "| release | examples | quick | full | torch | quick, libkokkos-dev | quick, Clang | with |"
  echo "|---|---|---|---|---|---|---|---|"
  for each in bookworm trixie forky sid; do
    [ -e "$builds/$each.versions" ] || continue
    printf '| %s |' "$(cat "$builds/$each.name")"
    for what in $everything; do
      printf ' %s |' "$(cat "$builds/$each.$what.result" 2>/dev/null || echo "not run")"
    done
    printf ' %s |\n' "$(cat "$builds/$each.versions")"
  done
}

# write_table: between the two marks of docs/backends.md.
write_table() {
  rows >"$builds/table"
  awk -v table="$builds/table" '
    /^<!-- releases: begin/ { print; while ((getline line < table) > 0) print line; skips = 1; next }
    /^<!-- releases end / { skips = 0 }
    !skips' docs/backends.md >"$builds/page"
  cat "$builds/page" >docs/backends.md
}

case $table in
  printed) rows && exit 0 ;;
  written) [ -n "$releases" ] || { write_table && exit 0; } ;;
esac
[ "$(id -u)" -eq 0 ] || fail "debootstrap, chroot and mounts need root"
releases=${releases:- trixie sid}
say "What a newcomer types, on$releases: $only. The roots are kept in $builds; all of it takes about 2 hours a release"
install_missing debootstrap git

# inside ROOT COMMAND: a shell in it, with nothing of this environment.
inside() {
  env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive DPKG_FORCE=unsafe-io CCACHE_DIR=/root/ccache chroot "$1" /bin/sh -c "cd /root && $2"
}

# exchange PACKAGE OTHER: in the root in $root the second for the first: the two packages of Kokkos have files of the same
# names, and other packages of Trilinos go with its own.
exchange() {
  inside "$root" "apt-get -q -y remove $1 && apt-get -q -y install --no-install-recommends $2" >"$root.apt.log" 2>&1 ||
    fail "$2 could not be installed (all it said is in $root.apt.log)"
}

# make_root RELEASE: leaves it in $root, with this commit in root/oktopk, its earlier builds, and mounts.
make_root() {
  root=$builds/$1
  if [ ! -e "$root.made" ]; then
    say "Making $root (about 5 minutes)"
    scripts=/usr/share/debootstrap/scripts
    [ -e "$scripts/$1" ] || ln -s sid "$scripts/$1"
    rm -rf --one-file-system "$root"
    debootstrap --variant=minbase --include=ca-certificates,git,ccache "$1" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
      >"$root.log" 2>&1 || { tail "$root.log" >&2 && fail "debootstrap failed (all it said is in $root.log)"; }
    touch "$root.made"
  fi
  cp /etc/resolv.conf /etc/hosts "$root/etc/"
  cp -r /etc/apt/apt.conf.d "$root/etc/apt/" # a proxy, say
  mount -t proc proc "$root/proc"
  mount --rbind /sys "$root/sys"
  mount --bind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/dev/shm"
  # What has not changed since the last run keeps its time, and is not compiled again.
  [ -e "$root/root/oktopk" ] || git clone -q . "$root/root/oktopk"
  git -C "$root/root/oktopk" fetch -q "$PWD" HEAD
  git -C "$root/root/oktopk" reset -q --hard FETCH_HEAD
  git -C "$root/root/oktopk" clean -q -ffdx --exclude=/build
  rm -f "$root/usr/local/bin/nproc"
  [ -z "$jobs" ] || printf '#!/bin/sh\necho %s\n' "$jobs" >"$root/usr/local/bin/nproc"
  [ -z "$jobs" ] || chmod +x "$root/usr/local/bin/nproc"
  inside "$root" 'apt-get -q update >/dev/null && . /etc/os-release && echo "$PRETTY_NAME"' | sed 's,GNU/Linux ,,' >"$root.name"
  [ ! -e "$root/usr/share/doc/libkokkos-dev" ] || exchange libkokkos-dev libtrilinos-kokkos-dev # after a run that was cut off
}

# versions: of the root in $root, of what the tests use.
versions() {
  inside "$root" 'for each in g++-$(g++ -dumpversion):GCC cmake:CMake libtrilinos-kokkos-dev:Trilinos libkokkos-dev:Kokkos libopenmpi-dev:"Open MPI" \
      libmpich-dev:MPICH python3-torch:torch catch2:Catch2; do
    version=$(dpkg-query -W -f "\${Version}" "${each%%:*}" 2>/dev/null) || continue
    [ -z "$version" ] || echo "${each#*:} $version"
  done' | sed 's/ [0-9]*:/ /; s/-[^-]*$//; s/+d[fs].*$//' | sort -u | paste -sd, | sed 's/,/, /g'
}

# try WHAT COMMAND: notes what passed of all, what was skipped, and the minutes.
try() {
  say "$release: $2"
  began=$(date +%s)
  status=0
  inside "$root" "cd oktopk && $2" >"$root.$1.log" 2>&1 </dev/null || status=$?
  minutes=$((($(date +%s) - began + 30) / 60))
  # The last line of the tests has what passed and failed; examples/run.sh says only how it ends.
  counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' "$root.$1.log" | tail -n 1)
  if [ -n "$counts" ]; then
    skipped=$(grep -c '\*\*\*Skipped' "$root.$1.log") || : # which CTest counts as passed
    result="$((${counts% *} - skipped)) of $((${counts% *} + ${counts#* }))"
    [ "$skipped" -eq 0 ] || result="$result ($skipped skipped)"
  elif [ "$status" -eq 0 ]; then
    result="1 of 1"
  else
    result="0 of 1" # it did not come as far as to count
  fi
  echo "$result, $minutes min" >"$root.$1.result"
  say "  $result in $minutes min; the log is $root.$1.log"
  [ "$status" -eq 0 ] || failed="$failed $release.$1"
}

failed=
for release in $releases; do
  make_root "$release"
  for what in $only; do
    case $what in
      examples) try examples "sh examples/run.sh --yes" ;;
      quick) try quick "sh tests/run.sh --yes" ;;
      full) try full "sh tests/run.sh --yes --rest" ;;
      torch) try torch "sh tests/run.sh --yes --torch" ;;
    esac
  done
  versions >"$root.versions"
  case " $only " in
    *" kokkos "*)
      if inside "$root" 'apt-cache show libkokkos-dev >/dev/null 2>&1'; then
        exchange libtrilinos-kokkos-dev libkokkos-dev
        try kokkos "sh tests/run.sh --yes --build build/libkokkos"
        sed -i "s/\$/, $(versions | tr ',' '\n' | sed -n 's/^ *Kokkos/Kokkos/p')/" "$root.kokkos.result"
        exchange libkokkos-dev libtrilinos-kokkos-dev
      else
        echo "not packaged" >"$root.kokkos.result"
      fi
      ;;
  esac
  case " $only " in
    *" clang "*)
      clang=$(inside "$root" "apt-cache search --names-only '^clang-[0-9]+\$'" | sed 's/^clang-//; s/ .*//' | sort -n | tail -n 1)
      inside "$root" "apt-get -q -y install --no-install-recommends clang-$clang" >"$root.apt.log" 2>&1 ||
        fail "clang-$clang could not be installed (all it said is in $root.apt.log)"
      try clang "CC=clang-$clang CXX=clang++-$clang sh tests/run.sh --yes --build build/clang$clang"
      sed -i "s/\$/, Clang $(inside "$root" "clang-$clang -dumpversion")/" "$root.clang.result"
      ;;
  esac
done
[ "$table" != written ] || write_table
rows
[ -z "$failed" ] || fail "failed:$failed"
