# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# Shared by examples/run.sh, tests/run.sh and cmake/prepare.sh, which source it in the root of the project. POSIX sh.

started=$(date +%s)

# say TEXT...: what happens next, with the seconds since the start.
say() {
  printf '[%4d s] %s\n' "$(($(date +%s) - started))" "$*"
}

# fail TEXT...: why it cannot go on.
fail() {
  printf '%s: %s\n' "$0" "$*" >&2
  exit 1
}

# need PACKAGE PROBE: PACKAGE is missing unless PROBE is there: a command, or files of a pattern that starts with /.
need() {
  case $2 in
    /*)
      for file in $2; do
        [ ! -e "$file" ] || return 0
      done
      ;;
    *)
      ! command -v "$2" >/dev/null 2>&1 || return 0
      ;;
  esac
  missing="$missing $1"
}

# need_kokkos: the packages of Kokkos and Kokkos-Kernels, unless the caller names another installation to CMake.
need_kokkos() {
  if [ -z "${Kokkos_ROOT:-}" ]; then
    need libtrilinos-kokkos-dev '/usr/include/trilinos/Kokkos_Core.hpp'
    need libtrilinos-kokkos-kernels-dev '/usr/include/trilinos/KokkosBlas3_gemm.hpp'
  fi
}

# install_missing LIST: LIST is a function that calls `need`; what it finds missing is installed with apt-get.
install_missing() {
  missing=
  "$1"
  if [ -z "$missing" ]; then
    say "All packages needed are there"
    return 0
  fi
  command -v apt-get >/dev/null 2>&1 || fail "please install what these packages of Debian 12 hold:$missing"
  [ "$(id -u)" -eq 0 ] || fail "please let an administrator run: apt-get install --no-install-recommends$missing"
  say "Installing with apt-get:$missing"
  mkdir -p build
  # shellcheck disable=SC2086
  {
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -o Acquire::Retries=3 update &&
      apt-get -q -y -o Acquire::Retries=3 install --no-install-recommends $missing
  } >build/apt.log 2>&1 || {
    tail -n 20 build/apt.log >&2
    fail "apt-get could not install$missing (all it said is in build/apt.log)"
  }
  missing=
  "$1"
  [ -z "$missing" ] || fail "still missing after the installation:$missing"
}

# build FOLDER [OPTION...] -- [TARGET...]: configures FOLDER once more and builds the targets, or everything, of $build_source
# where that is set.
build() {
  folder=$1
  shift
  options=
  while [ "$1" != -- ]; do
    options="$options $1"
    shift
  done
  shift
  targets=
  [ $# -eq 0 ] || targets="--target $*"
  say "Configuring $folder"
  mkdir -p "$folder"
  # shellcheck disable=SC2086
  cmake -S "${build_source:-.}" -B "$folder" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON $options >"$folder.log" 2>&1 || {
    cat "$folder.log" >&2
    fail "configuring failed"
  }
  sed -n 's/^-- oktopk: /           /p' "$folder.log"
  say "Building $folder on $(nproc) cores"
  # shellcheck disable=SC2086
  cmake --build "$folder" --parallel "$(nproc)" $targets >"$folder.log" 2>&1 || {
    grep -v '^\[[0-9]*/[0-9]*\] ' "$folder.log" >&2
    fail "building failed (all it said is in $folder.log)"
  }
}

# Open MPI on one machine, perhaps as root in a container, with more ranks than cores: ranks that wait yield, no remote
# shell is sought, and shared memory does not count on reading another process's memory.
export OMPI_ALLOW_RUN_AS_ROOT=1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_plm=isolated
export OMPI_MCA_btl_vader_single_copy_mechanism=none
