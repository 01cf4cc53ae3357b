# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# Shared by examples/run.sh, tests/run.sh and cmake/prepare.sh, which source it in the root of the project. POSIX sh.

# Numbers have a point: mawk reads 0.88 as 0 where the user's have a comma. And what tools say is read here.
export LC_ALL=C

started=$(date +%s)
called_from=${called_from:-$(pwd)} # set by a script that has gone elsewhere since

# say TEXT...: what happens next, with the seconds since the start.
say() {
  printf '[%4d s] %s\n' "$(($(date +%s) - started))" "$*"
}

# fail TEXT...: why it cannot go on.
fail() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

# descendants PID: all that a process has started, and what these have.
descendants() {
  for each in $(cat "/proc/$1/task/"*/children 2>/dev/null); do
    echo "$each"
    descendants "$each"
  done
}

# end_by SIGNAL: ends all that this script has started, and the script. A builder or a launcher of ranks would go on alone.
end_by() {
  trap '' HUP INT TERM
  # shellcheck disable=SC2046
  kill $(descendants $$) 2>/dev/null || :
  trap - "$1"
  kill -s "$1" $$
}
for each in HUP INT TERM; do
  # shellcheck disable=SC2064
  trap "end_by $each" "$each"
done

# attended [VARIABLE=VALUE...] COMMAND...: runs a program. Unlike one in the foreground it does not keep the shell from
# hearing a signal. The shell lets it ignore Ctrl-C, which programs that it starts would not expect.
hearing=
! env --default-signal=INT true 2>/dev/null || hearing=--default-signal=INT,QUIT # coreutils 8.31
attended() {
  env $hearing "$@" &
  wait $!
}

# cores: how many this script may use: those that it may run on, or fewer by the quota of its container (cgroup 2), which nproc
# heeds since coreutils 9.8.
cores() {
  count=$(nproc)
  group=${cgroups:=/sys/fs/cgroup}$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null)
  while [ "${group#"$cgroups"}" != "$group" ]; do
    if read -r quota period <"$group/cpu.max" && [ "$quota" != max ]; then
      allowed=$(((quota + period - 1) / period))
      [ "$allowed" -ge "$count" ] || count=$allowed
    fi 2>/dev/null
    group=${group%/*}
  done
  echo "$count"
}

# sign_of PACKAGE: a command that the package brings, or files.
sign_of() {
  case $1 in
    g++) echo c++ ;;
    cmake) echo cmake ;;
    mpich) echo mpirun.mpich ;;
    ninja-build) echo ninja ;;
    bible-kjv) echo bible ;;
    bible-kjv-text) echo /usr/lib/bible.data ;;
    iproute2) echo tc ;;
    libgloo-dev) echo /usr/include/gloo/config.h ;;
    libtorch-dev) echo /usr/include/torch/csrc/api/include/torch/torch.h ;;
    pkg-config) echo pkg-config ;;
    python3) echo python3 ;;
    python3-dev) echo '/usr/include/python3*/Python.h' ;;
    python3-torch) echo /usr/lib/python3/dist-packages/torch/__init__.py ;;
    python3-venv) echo '/usr/lib/python3.*/ensurepip/__init__.py' ;;
    clang-* | debootstrap | doxygen | git) echo "$1" ;;
    libopenmpi-dev) echo mpicxx.openmpi ;;
    openmpi-bin) echo mpirun.openmpi ;;
    libmpich-dev) echo mpicxx.mpich ;;
    libsimgrid-dev) echo smpicxx ;;
    python3-pytest) echo pytest-3 ;;
    catch2) echo '/usr/include/catch2/catch*.hpp' ;;
    libcli11-dev) echo /usr/include/CLI/CLI.hpp ;;
    libbenchmark-dev) echo /usr/include/benchmark/benchmark.h ;;
    libfmt-dev) echo /usr/include/fmt/core.h ;;
    libstreamvbyte-dev) echo /usr/include/streamvbytedelta.h ;;
    libzstd-dev) echo /usr/include/zstd.h ;;
    libxxhash-dev) echo /usr/include/xxhash.h ;;
    libzfp-dev) echo /usr/include/zfp.h ;;
    zlib1g-dev) echo /usr/include/zlib.h ;;
    libopenblas0-pthread) echo '/usr/lib/*/openblas-*/libblas.so.3' ;;
    libtrilinos-kokkos-dev) echo '/usr/include/*/Kokkos_Core.hpp' ;; # in trilinos, or kokkos since Trilinos 16
    libtrilinos-kokkos-kernels-dev) echo /usr/include/trilinos/KokkosBlas3_gemm.hpp ;;
    python3-matplotlib) echo /usr/lib/python3/dist-packages/matplotlib/__init__.py ;;
    dataset-fashion-mnist) echo '/usr/share/datasets/fashion-mnist/train-images-idx3-ubyte.gz' ;;
    *) fail "no sign of the package $1 is known" ;;
  esac
}

# find_missing PACKAGE...: leaves in $missing those that are not there. Those of Kokkos are not needed where the caller
# names another installation to CMake.
find_missing() {
  missing=
  for package in "$@"; do
    case ${Kokkos_ROOT:+given-}$package in
      given-libtrilinos-kokkos*) continue ;;
    esac
    sign=$(sign_of "$package")
    for first in $sign; do
      case $first in
        /*) [ -e "$first" ] ;;
        *) command -v "$first" >/dev/null 2>&1 ;;
      esac || missing="$missing $package"
      break
    done
  done
}

# may_install: whether the packages in $missing may be installed: yes with --yes ($assume_yes) and where nobody can be
# asked, for standard input is no terminal; else as the user answers.
may_install() {
  [ "${assume_yes:-}" = yes ] && return 0
  if [ ! -t 0 ]; then
    say "Nobody to ask (standard input is no terminal), so missing packages are installed"
    return 0
  fi
  printf 'These packages are missing:%s\nInstall them with apt-get? [y/N] ' "$missing" >&2
  read -r answer || answer=
  case $answer in
    [yY] | [yY][eE][sS]) return 0 ;;
    *) return 1 ;;
  esac
}

# choose_builds FOLDER: leaves in $builds the folder for builds and output: FOLDER where it is given, else build/ in the
# checkout, or build/ where the script was called ($called_from) if the checkout cannot be written.
choose_builds() {
  if [ -n "$1" ]; then
    builds=$(cd "$called_from" && mkdir -p "$1" && cd "$1" && pwd) || fail "cannot make the folder $1"
  elif [ -w . ] && { [ ! -e build ] || [ -w build ]; }; then
    builds=build
  else
    builds=$called_from/build
    { mkdir -p "$builds" && [ -w "$builds" ]; } 2>/dev/null || fail "neither the checkout nor $called_from can be written; name a folder with --build"
    say "The checkout cannot be written: builds and output go to $builds"
  fi
  { mkdir -p "$builds" && [ -w "$builds" ]; } || fail "cannot write to $builds; name another folder with --build"
}

# install_missing PACKAGE...: installs those that are missing with apt-get, where that is allowed.
install_missing() {
  find_missing "$@"
  if [ -z "$missing" ]; then
    say "All packages needed are there"
    return 0
  fi
  command -v apt-get >/dev/null 2>&1 || fail "please install what these packages of Debian 12 hold:$missing"
  [ "$(id -u)" -eq 0 ] || fail "please let an administrator run: apt-get install --no-install-recommends$missing"
  may_install || fail "these packages are missing, and --yes installs them:$missing"
  say "Installing with apt-get:$missing"
  # shellcheck disable=SC2086
  {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -o Acquire::Retries=3 update &&
      apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends $missing
  } >"$builds/apt.log" 2>&1 || {
    tail -n 20 "$builds/apt.log" >&2
    fail "apt-get could not install$missing (all it said is in $builds/apt.log)"
  }
  find_missing "$@"
  [ -z "$missing" ] || fail "still missing after the installation:$missing"
}

# All that can be built is asked for, which a plain cmake does not; OPTIONs of the caller come later and win.
everything="-DOKTOPK_ENABLE_MPI=ON -DOKTOPK_ENABLE_TESTS=ON -DOKTOPK_ENABLE_EXAMPLES=ON -DOKTOPK_ENABLE_BENCHMARKS=ON"

# minutes CORE_MINUTES OTHERS: about how long so much work takes on the cores that are here, and what cores do not share.
minutes() {
  echo $((($1 + $(cores) - 1) / $(cores) + $2))
}

# report_progress LOG: every 20 s how far ninja is, as long as this script runs.
report_progress() {
  while sleep 20 >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
    far=$(sed -n 's|^\[\([0-9]*\)/\([0-9]*\)\] [BL].*|\1 of \2 objects|p' "$1" | tail -n 1)
    [ -z "$far" ] || say "  $far"
  done
}

# build FOLDER [OPTION...] -- [TARGET...]: configures FOLDER once more and builds the targets, or everything, of $build_source
# where that is set.
build() {
  folder=$1
  shift
  options=
  [ "${build_source:-.}" != . ] || options=$everything
  while [ "$1" != -- ]; do
    options="$options $1"
    shift
  done
  shift
  targets=
  [ $# -eq 0 ] || targets="--target $*"
  mkdir -p "$folder"
  # Held by all that works on the build, so that another start does not build beside it, even where this script is gone.
  if command -v flock >/dev/null 2>&1; then
    exec 9>"$folder.lock"
    flock -n 9 || {
      say "Another build is under way in $folder: waiting for its end" >&2
      attended flock 9
    }
  fi
  say "Configuring $folder"
  # A compiler cache is used where one is installed. It has to know what precompiled headers define.
  cache=$(command -v "${compiler_cache:-ccache}") && export CCACHE_SLOPPINESS=pch_defines,time_macros
  # shellcheck disable=SC2086
  attended cmake -S "${build_source:-.}" -B "$folder" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$cache" $options >"$folder.log" 2>&1 || {
    cat "$folder.log" >&2
    fail "configuring failed"
  }
  sed -n 's/^-- oktopk: /           /p' "$folder.log"
  say "Building $folder on $(cores) cores; the log is $folder.log"
  : >"$folder.log"
  report_progress "$folder.log" 9>&- &
  reporter=$!
  status=0
  # shellcheck disable=SC2086
  attended cmake --build "$folder" --parallel "$(cores)" $targets >"$folder.log" 2>&1 || status=$?
  kill "$reporter" 2>/dev/null || : # gone where nobody reads what it says
  exec 9>&-
  [ "$status" -eq 0 ] || {
    grep -v '^\[[0-9]*/[0-9]*\] ' "$folder.log" >&2
    fail "building failed (all it said is in $folder.log)"
  }
}

# Open MPI on one machine, perhaps as root in a container, with more ranks than cores: ranks that wait yield, no remote
# shell is sought, and shared memory does not count on reading another process's memory.
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe # the same in Open MPI 5
export PRTE_MCA_mapby=:oversubscribe                        # and in 6, which warns of the other one alone
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm=isolated
export OMPI_MCA_btl_vader_single_copy_mechanism=none
