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
. cmake/kokkos_cuda.sh
. tests/cuda_emulator/find_nvcc.sh

usage() {
  echo "sh tests/run.sh [--yes] [--full] [--build DIR] [--sanitize] [--backend serial|openmp|cuda] [--kokkos PREFIX] [--torch]"
  echo "  --yes             install missing packages without asking (Debian and Ubuntu, as root)"
  echo "  --full            all tests: first the quick ones, which run without it, then fuzzing, simulation, programs,"
  echo "                    installation, pages, style, real faults, a second MPI"
  echo "  --rest            of these what --full adds to the quick ones"
  echo "  --build DIR       build there; else in \$OKTOPK_BUILD, in build/ of the checkout, or, where that cannot be"
  echo "                    written, in build/ of the current folder"
  echo "  --sanitize        with the address and undefined-behaviour sanitizers"
  echo "  --backend serial  the Kokkos that Debian packages, with Open MPI, and in --full with MPICH (the default)"
  echo "  --backend openmp  the same release for OpenMP, built of Debian's source package; with 1, 2 and 4 threads"
  echo "  --backend cuda    the same release for CUDA; the tests that launch kernels, on a GPU where one is, else on"
  echo "                    the emulator in tests/cuda_emulator, in four modes; needs nvcc 13"
  echo "  --quick           with --backend cuda: a few of these files, which takes minutes"
  echo "  --torch           the tests of what stands on libtorch and PyTorch, and no others; all else runs without them"
  echo "  --kokkos PREFIX   the Kokkos installed there, with \$OMP_NUM_THREADS threads (2 unless set); with --backend cuda"
  echo "                    one for CUDA, built with tests/cuda_emulator/nvcc.sh"
}

kind=release
backend=serial
kokkos=
quick=no
tiers=quick
torch=no
only=
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
    --quick) quick=yes ;;
    --full) tiers="quick full" ;;
    --rest) tiers=full ;;
    --torch) torch=yes ;;
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

packages="g++ cmake ninja-build libtrilinos-kokkos-dev libopenmpi-dev openmpi-bin catch2 libxxhash-dev libzfp-dev
  python3"
[ "$tiers" = quick ] || packages="$packages pkg-config libtrilinos-kokkos-kernels-dev libopenblas0-pthread libmpich-dev mpich
  libcli11-dev libfmt-dev libbenchmark-dev libstreamvbyte-dev libzstd-dev zlib1g-dev dataset-fashion-mnist python3-pytest
  doxygen"
# What the format and the lint are made with; they say the same on every release, and others do not package it.
[ "$tiers" = quick ] || [ "$(. /etc/os-release 2>/dev/null && echo "$ID${VERSION_ID:-}")" != debian12 ] ||
  packages="$packages clang-format-16 clang-tidy-16"

options="-DOKTOPK_WERROR=ON -DOKTOPK_ENABLE_TORCH=OFF"
if [ "$torch" = yes ]; then
  [ "$backend$kokkos" = serial ] || fail "--torch takes the Kokkos that Debian packages"
  backend=torch
  options="-DOKTOPK_WERROR=ON -DOKTOPK_ENABLE_TORCH=ON -DOKTOPK_PYTHON=/usr/bin/python3"
  packages="g++ cmake ninja-build libtrilinos-kokkos-dev libopenmpi-dev openmpi-bin catch2 libcli11-dev libfmt-dev
    zlib1g-dev libtorch-dev libgloo-dev python3-torch python3-dev python3-venv python3-pytest"
fi
seconds=300 # after which a test case, or a command of a test, counts as hanging on a machine at rest; others may come later
case $kind in
  # Most of the time is the compiler's. examples/run.sh and benchmarks/run.py build with all optimisations.
  release) options="$options -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1" ;;
  sanitize) options="$options -DCMAKE_BUILD_TYPE=RelWithDebInfo -DOKTOPK_ENABLE_SANITIZERS=ON" seconds=600 ;;
esac
case $backend in
  serial | openmp | torch) ;;
  cuda) find_nvcc >/dev/null || fail "--backend cuda needs nvcc" ;;
  *) fail "unknown backend $backend; there are serial, openmp and cuda" ;;
esac
[ "$quick" = no ] || [ "$backend" = cuda ] || fail "--quick goes with --backend cuda"
if [ -n "$kokkos" ] && [ "$backend" = cuda ]; then
  given=$(printf %s "$kokkos" | tr -c 'A-Za-z0-9.' '-')
elif [ -n "$kokkos" ]; then
  [ "$backend" = serial ] || fail "--kokkos names a Kokkos, and --backend $backend another"
  backend=kokkos$(printf %s "$kokkos" | tr -c 'A-Za-z0-9.' '-')
fi

passed=0
failed=0

# run_tests FOLDER [THREADS]: adds to what passed and failed of the tier, or of all tests where none is set; each program,
# and each rank, has so many threads of OpenMP.
run_tests() {
  jobs=$(cores) # however many threads: those that sleep wake up sooner on a busy core than on one at rest
  # Others may be at work here, too: limits are wall time.
  limit=$(python3 tests/support/slowness.py "$seconds")
  say "Running the tests in $1, $jobs at a time with ${2:-1} thread(s) each, a case for at most $limit s"
  # The status of ctest is that of its closing lines, which are read instead: the pipe has another one. Tests take and free
  # much memory, page by page, where the C library does not ask for huge pages: up to two thirds of their time.
  # shellcheck disable=SC2016
  attended OMP_NUM_THREADS="${2:-1}" OKTOPK_TEST_SECONDS="$limit" GLIBC_TUNABLES="${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}" \
    sh -c 'ctest --test-dir "$@" 2>&1 | tee "$1.log"' sh "$1" --parallel "$jobs" --output-on-failure \
    --timeout "$((10 * limit))" --no-tests=error ${tier:+--label-regex "^$tier\$"} ${only:+--tests-regex "$only"}
  counts=$(sed -n 's/^[0-9]*% tests passed, \([0-9]*\) tests failed out of \([0-9]*\)$/\1 \2/p' "$1.log")
  [ -n "$counts" ] || fail "ctest did not come to an end in $1"
  failed=$((failed + ${counts% *}))
  passed=$((passed + ${counts#* } - ${counts% *}))
}

# The suites that launch kernels, and of these what finds most in little time.
device_suites='^((select|partition|exchange|format|codec|dense|sgd|training|tools|algorithm|sparse_sum|device_engine)/|sparse/test_given)'
quick_suites='^(partition/|device_engine/|select/test_compact|exchange/test_(split_and_reduce|balance)|format/test_coo\.|sparse/test_given|sgd/test_construction)'

has_gpu() {
  nvidia-smi -L >/dev/null 2>&1
}

# run_on_device FOLDER: runs the tests there on a GPU, or on the emulator in each of its modes.
run_on_device() {
  if has_gpu; then
    LD_LIBRARY_PATH=$(dirname "$(find_nvcc)")/../lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    run_tests "$1"
    return 0
  fi
  say "There is no GPU, so the emulator runs the kernels"
  for mode in LAZY=0 LAZY=1 SEED=3 INITCHECK=1; do
    say "OKTOPK_CUDA_EMULATOR_$mode:"
    export "OKTOPK_CUDA_EMULATOR_$mode"
    run_tests "$1"
    unset "OKTOPK_CUDA_EMULATOR_${mode%=*}"
  done
}

# wheel_and_torch FOLDER: the wheel of oktopk_torch, and a Python with the torch of PyPI in FOLDER/torch-VERSION. Without PyPI
# there are neither: then the tests take the package from the sources, and leave out tensors of devices, and frameworks.
wheel_and_torch() {
  wheel=
  with_devices=$(cd "$1" && pwd)/torch-2.15.0
  if ! "$with_devices/bin/python3" -c 'import torch, numpy, lightning, accelerate, transformers, ray, torchft' 2>/dev/null; then
    say "Installing torch of PyPI in $with_devices, 6 GB, while the wheel is built"
    python3 -m venv "$with_devices"
    if ! attended "$with_devices/bin/pip" --disable-pip-version-check --quiet install numpy==2.4.6; then
      say "PyPI gives no packages here: without the wheel, and without tensors of devices and frameworks"
      rm -rf "$with_devices"
      with_devices=
      return 0
    fi
    "$with_devices/bin/pip" --disable-pip-version-check --quiet install torch==2.15.0 numpy==2.4.6 lightning==2.6.6 \
      accelerate==1.15.0 transformers==5.24.0 'ray[train]==2.60.0' torchft-nightly==2026.10.26 &
    installing=$!
  fi
  rm -rf dist
  attended sh packaging/wheel.sh --build "$1"
  wheel=$(pwd)/$(ls dist/*.whl)
  [ -z "${installing:-}" ] || wait "$installing" || fail "torch of PyPI could not be installed in $with_devices"
}

choose_builds "$folder"
[ "$backend" != openmp ] || kokkos=$(cd "$builds" && pwd)/kokkos-openmp/installed
[ "$backend" != cuda ] || [ -n "$kokkos" ] || kokkos=$(cd "$builds" && pwd)/kokkos-cuda/installed
if [ -n "$kokkos" ]; then
  Kokkos_ROOT=$kokkos
  export Kokkos_ROOT # what packages are needed depends on it
  # Threads that wait must not spin, and not all be bound to the first cores, where tests run side by side; nor should
  # Kokkos complain of that, or of more threads than cores, to tests and to a build that ask programs for what they say.
  export OMP_PROC_BIND=false OMP_WAIT_POLICY=passive KOKKOS_DISABLE_WARNINGS=1
fi
# About how long it takes with a new build, on a core of an AMD EPYC of 2026: what cores share, and what they do not.
case $backend-$tiers in
  serial-quick)
    say "The quick tests: every room of the library, every algorithm, Open MPI on 1 to 8 ranks; about $(minutes 16 3) minutes on" \
      "$(cores) cores. --full has all"
    ;;
  serial-full) say "What --full adds to the quick tests: about $(minutes 16 9) minutes on $(cores) cores" ;;
  serial-*) say "All tests, the quick ones first: about $(minutes 32 12) minutes on $(cores) cores" ;;
  torch-*) say "The tests of what stands on libtorch and PyTorch: about $(minutes 25 7) minutes on $(cores) cores" ;;
  *) say "The tests on another Kokkos: $backend" ;;
esac
# shellcheck disable=SC2086
install_missing $packages
main=$builds/tests-$backend-$kind
options="$options -DMPI_CXX_COMPILER=mpicxx.openmpi"
[ "$backend" != torch ] || main=$builds/tests-serial-$kind # what is built of it serves here, too
[ -z "$kokkos" ] || [ "$backend" = cuda ] || options="$options -DKokkos_ROOT=$kokkos -DOKTOPK_TEST_THREADS=inherited"

# build_tier: what the tests of $tier need.
build_tier() {
  # shellcheck disable=SC2086,SC2046
  build "$main" $options -- $([ "$tier" = full ] || echo quick_tests)
}

tier=
case $backend in
  serial)
    second=$main-mpich
    for tier in $tiers; do
      build_tier
      run_tests "$main"
      [ "$tier" = full ] || continue
      # The catalogue has nothing of MPI in it, so the one that was compiled first serves both.
      # shellcheck disable=SC2086
      build "$second" $options -DMPI_CXX_COMPILER=mpicxx.mpich -DOKTOPK_TEST_ONLY_MPI=ON -DOKTOPK_ENABLE_EXAMPLES=OFF \
        -DOKTOPK_ENABLE_BENCHMARKS=OFF "-DOKTOPK_COMPILED_CATALOGUE=../${main##*/}/src/liboktopk_catalogue.a" --
      run_tests "$second"
    done
    ;;
  torch)
    wheel_and_torch "$builds"
    # The engine is installed by find_package's test, and used where there is no wheel.
    # shellcheck disable=SC2086
    build "$main" $options "-DOKTOPK_PYTHON_WHEEL=$wheel" \
      "-DOKTOPK_PYTHON_WITH_DEVICES=${with_devices:+$with_devices/bin/python3}" -- test_torch train_torch oktopk_engine
    only='^torch\.|check_torch_training'
    run_tests "$main"
    ;;
  openmp)
    kokkos_openmp "$builds/kokkos-openmp" "$builds/kokkos-source"
    for tier in $tiers; do
      build_tier
      for each in 1 2 4; do
        run_tests "$main" "$each"
      done
    done
    ;;
  cuda)
    compiler_cache=none # nvcc.sh is no compiler that it knows
    emulator=$(cd "$builds" && pwd)/cuda-emulator
    build_source=tests/cuda_emulator
    build "$emulator" "-DOKTOPK_NVCC=$(find_nvcc)" --
    build_source=.
    run_tests "$emulator"
    OKTOPK_CUDART=$emulator
    export OKTOPK_CUDART
    [ -n "${given:-}" ] || kokkos_cuda "$builds/kokkos-cuda" "$builds/kokkos-source"
    main=$builds/tests-cuda${given:-}
    suites=$device_suites
    mpi="-DMPI_CXX_COMPILER=mpicxx.openmpi"
    if [ "$quick" = yes ]; then
      main=$main-quick
      suites=$quick_suites
      mpi="-DOKTOPK_ENABLE_MPI=OFF"
    fi
    # Kokkos from 4 on lets CMake look for the libraries of CUDA, which finds the toolkit's.
    libraries="-DCUDA_CUDART=$emulator/libcudart.so -DCUDA_cudart_LIBRARY=$emulator/libcudart.so
      -DCUDA_cuda_driver_LIBRARY=$emulator/libcuda.so"
    ! has_gpu || libraries=
    # nvcc's host code has warnings of its own.
    # shellcheck disable=SC2086
    build "$main" -DOKTOPK_TEST_ONLY_UNITS="$suites" -DCMAKE_CXX_COMPILER="$PWD/tests/cuda_emulator/nvcc.sh" \
      -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O1 -DKokkos_ROOT="$kokkos" \
      -DOKTOPK_ENABLE_DEVICE_ENGINE=ON "$mpi" $libraries -DOKTOPK_ENABLE_ZFP=OFF -DOKTOPK_ENABLE_TORCH=OFF -DOKTOPK_ENABLE_EXAMPLES=OFF -DOKTOPK_ENABLE_BENCHMARKS=OFF --
    seconds=1200 # an emulated second takes long
    run_on_device "$main"
    ;;
  *)
    for tier in $tiers; do
      build_tier
      run_tests "$main" "$threads"
    done
    ;;
esac
say "Done; each run has its own closing lines above, together they are:"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
