# SPDX-FileCopyrightText: 2026 The oktopk authors
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# shellcheck shell=sh

# Sourced after kokkos_openmp.sh by tests/run.sh, in the root of the project. POSIX sh. The packaged release of Kokkos,
# built for CUDA: as PTX, against the libcudart of tests/cuda_emulator.

# correct FILE OLD NEW: replaces the one line of FILE that is OLD, but for its spaces.
correct() {
  found=$(grep -c "^ *$2\$" "$1") || true
  [ "$found" = 1 ] || fail "$1 has $found lines '$2', and one was to be corrected: is it another Kokkos than 3.4.01?"
  sed -i "s/^\\( *\\)$2\$/\\1$3/" "$1"
}

# correct_for_cuda_13 KOKKOS: what nvcc 13 needs of Kokkos 3.4.01; docs/backends.md says why.
correct_for_cuda_13() {
  correct "$1/core/src/Cuda/Kokkos_Cuda_Half.hpp" "#ifndef KOKKOS_CUDA_HALF_HPP_" "#if 0 \\/\\/ half_t does not compile"
  correct "$1/core/src/Cuda/Kokkos_CudaSpace.cpp" "CUDA_SAFE_CALL(cudaMemPrefetchAsync(ptr, bytes, space.cuda_device()," \
    "CUDA_SAFE_CALL(cudaMemPrefetchAsync(ptr, bytes, cudaMemLocation{cudaMemLocationTypeDevice, space.cuda_device()}, 0,"
}

# correct_for_newer_gpus KOKKOS: 3.4.01 ends the program on a GPU of another generation than that which code was made for, where the
# driver makes code of PTX.
correct_for_newer_gpus() {
  correct "$1/core/src/Cuda/Kokkos_Cuda_Instance.cpp" \
    "if (compiled_major != cudaProp.major || compiled_minor > cudaProp.minor) {" "if (compiled_major > cudaProp.major) {"
}

# kokkos_cuda FOLDER SOURCES: Kokkos for CUDA and Serial, installed in FOLDER/installed; at once where it is there
# already, for shared libraries, too. SOURCES is where kokkos_source() unpacks it, and $OKTOPK_CUDART where tests/cuda_emulator was built.
kokkos_cuda() {
  [ ! -e "$1/installed/lib/cmake/Kokkos/KokkosConfig.cmake" ] ||
    ! grep -qs '^CMAKE_POSITION_INDEPENDENT_CODE:[A-Z]*=ON$' "$1/build/CMakeCache.txt" || return 0
  mkdir -p "$1"
  kokkos_source "$2"
  rm -rf "$1/kokkos" "$1/build" "$1/installed"
  cp -r "$2/kokkos" "$1/kokkos"
  correct_for_cuda_13 "$1/kokkos"
  say "Building Kokkos for CUDA and Serial"
  {
    # It knows no C++20 with nvcc, and may be used with it. The engine, a shared library, has it inside.
    cmake -S "$1/kokkos" -B "$1/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_STANDARD=17 \
      -DCMAKE_CXX_EXTENSIONS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
      -DCMAKE_CXX_COMPILER="$PWD/tests/cuda_emulator/nvcc.sh" \
      -DCMAKE_CXX_FLAGS_RELEASE="-O1 -w" -DKokkos_ENABLE_SERIAL=ON -DKokkos_ENABLE_CUDA=ON \
      -DKokkos_ENABLE_CUDA_LAMBDA=ON -DKokkos_ARCH_TURING75=ON -DCUDA_CUDART="$OKTOPK_CUDART/libcudart.so" \
      -DCUDA_cuda_driver_LIBRARY="$OKTOPK_CUDART/libcuda.so" -DCMAKE_INSTALL_LIBDIR=lib \
      -DCMAKE_INSTALL_PREFIX="$(cd "$1" && pwd)/installed" &&
      cmake --build "$1/build" --parallel "$(nproc)" --target install
  } >"$1/log" 2>&1 || {
    tail -n 20 "$1/log" >&2
    fail "Kokkos could not be built for CUDA (all it said is in $1/log)"
  }
}
