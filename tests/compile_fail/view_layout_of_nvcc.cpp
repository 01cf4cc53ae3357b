// expect: kernels would read garbage behind a Kokkos::View. Take Kokkos 4.7.02
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What nvcc 13.0 and Kokkos 4.6.99 define: every header that knows a View must refuse them.

#include <Kokkos_Core.hpp>

#undef KOKKOS_VERSION
#define KOKKOS_VERSION 40699
#undef KOKKOS_ENABLE_CUDA
#define KOKKOS_ENABLE_CUDA
#undef KOKKOS_ENABLE_IMPL_VIEW_LEGACY
#undef MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS
#define MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS 1
#undef __NVCC__
#define __NVCC__
#undef __CUDACC_VER_MAJOR__
#define __CUDACC_VER_MAJOR__ 13
#undef __CUDACC_VER_MINOR__
#define __CUDACC_VER_MINOR__ 0

#include <oktopk/core/kokkos_ext/concepts.hpp>
