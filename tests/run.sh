#!/bin/sh
# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Builds and runs every test; installs what is missing on Debian and Ubuntu. See usage below.
set -eu
called_from=$(pwd)
threads=${OMP_NUM_THREADS:-2} # for --kokkos
unset OMP_NUM_THREADS         # which nproc takes for the number of cores
cd "$(dirname "$0")/.."
. cmake/setup.sh
. cmake/kokkos_openmp.sh

usage() {
  echo "sh tests/run.sh [--yes] [--build DIR] [--sanitize] [--backend serial|openmp | --kokkos PREFIX]"
  echo "  --yes             install missing packages without asking (Debian and Ubuntu, as root)"
  echo "  --build DIR       build there; else in \$OKTOPK_BUILD, in build/ of the checkout, or, where that cannot be"
  echo "                    written, in build/ of the current folder"
  echo "  --sanitize        with the address and undefined-behaviour sanitizers"
  echo "  --backend serial  the Kokkos that Debian packages, with Open MPI and with MPICH (the default)"
  echo "  --backend openmp  the same release for OpenMP, built of Debian's source package; with 1, 2 and 4 threads"
  echo "  --kokkos PREFIX   the Kokkos installed there, with \$OMP_NUM_THREADS threads (2 unless set)"
}

kind=release
backend=serial
kokkos=
folder=${OKTOPK_BUILD:-}
while [ $# -gt 0 ]; do
  case $1 in
    --yes) assume_yes=yes ;;
    --build)
      [ $# -ge 2 ] || fail "--build needs a folder"
      shift
      folder=$1
      ;;
    --sanitize) kind=sanitize ;;
    --backend)
      [ $# -ge 2 ] || fail "--backend needs the name of one"
      shift
      backend=$1
      ;;
    --kokkos)
      [ $# -ge 2 ] || fail "--kokkos needs the folder where one is installed"
      shift
      kokkos=$(cd "$called_from" && cd "$1" && pwd) || fail "there is no folder $1"
      ;;
    -h | --help)
      usage
      exit 0
      ;;
    *)
      usage >&2
      fail "unknown option $1"
      ;;
  esac
  shift
done

packages="g++ cmake ninja-build libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev libopenblas0-pthread libopenmpi-dev
  openmpi-bin libmpich-dev mpich catch2 libcli11-dev libfmt-dev libbenchmark-dev libstreamvbyte-dev libzstd-dev
  libzfp-dev zlib1g-dev dataset-fashion-mnist python3-pytest clang-format-16 clang-tidy-16 doxygen"

options="-DOKTOPK_WERROR=ON"
case $kind in
  release) options="$options -DCMAKE_BUILD_TYPE=Release" ;;
  sanitize) options="$options -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOKTOPK_ENABLE_SANITIZERS=ON -DOKTOPK_TEST_SECONDS=600" ;;
esac
case $backend in
  serial | openmp) ;;
  *) fail "unknown backend $backend; there are serial and openmp" ;;
esac
if [ -n "$kokkos" ]; then
  [ "$backend" = serial ] || fail "--kokkos names a Kokkos, and --backend $backend another"
  backend=kokkos$(printf %s "$kokkos" | tr -c 'A-Za-z0-9.' '-')
fi

passed=0
failed=0

# run_tests FOLDER [THREADS]: adds to what passed and failed; each program, and each rank, has so many threads of OpenMP.
run_tests() {
  jobs=$(nproc) # however many threads: those that sleep wake up sooner on a busy core than on one at rest
  say "Running the tests in $1, $jobs at a time with ${2:-1} thread(s) each"
  # The status of ctest is that of its closing lines, which are read instead: the pipe has another one.
  OMP_NUM_THREADS=${2:-1} ctest --test-dir "$1" --parallel "$jobs" --output-on-failure --no-tests=error 2>&1 | tee "$1.log"
  counts=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p' "$1.log")
  [ -n "$counts" ] || fail "ctest did not come to an end in $1"
  failed=$((failed + ${counts% *}))
  passed=$((passed + ${counts#* } - ${counts% *}))
}

choose_builds "$folder"
[ "$backend" != openmp ] || kokkos=$(cd "$builds" && pwd)/kokkos-openmp/installed
if [ -n "$kokkos" ]; then
  Kokkos_ROOT=$kokkos
  export Kokkos_ROOT # what packages are needed depends on it
  # Threads that wait must not spin, and not all be bound to the first cores, where tests run side by side; nor should
  # Kokkos complain of that, or of more threads than cores, to tests and to a build that ask programs for what they say.
  export OMP_PROC_BIND=false OMP_WAIT_POLICY=passive KOKKOS_DISABLE_WARNINGS=1
fi
# shellcheck disable=SC2086
install_missing $packages
main=$builds/tests-$backend-$kind
options="$options -DMPI_CXX_COMPILER=mpicxx.openmpi"
case $backend in
  serial)
    second=$builds/tests-$backend-$kind-mpich
    # shellcheck disable=SC2086
    build "$main" $options --
    # shellcheck disable=SC2086
    build "$second" $options -DMPI_CXX_COMPILER=mpicxx.mpich -DOKTOPK_TEST_ONLY_MPI=ON -DOKTOPK_ENABLE_EXAMPLES=OFF \
      -DOKTOPK_ENABLE_BENCHMARKS=OFF --
    run_tests "$main"
    run_tests "$second"
    ;;
  openmp)
    kokkos_openmp "$builds/kokkos-openmp"
    # shellcheck disable=SC2086
    build "$main" $options -DKokkos_ROOT="$kokkos" -DOKTOPK_TEST_THREADS=inherited --
    for each in 1 2 4; do
      run_tests "$main" "$each"
    done
    ;;
  *)
    # shellcheck disable=SC2086
    build "$main" $options -DKokkos_ROOT="$kokkos" -DOKTOPK_TEST_THREADS=inherited --
    run_tests "$main" "$threads"
    ;;
esac
say "Done; each run has its own closing lines above, together they are:"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
