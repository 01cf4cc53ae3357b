// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

// The one place that names backends: which host memory a device copies to fastest, and what is a device at all.
namespace oktopk::detail {

/// Whether kernels of `E` run beside the host program, in memory that the host cannot simply read.
template <execution_space E>
inline constexpr bool is_device = !Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename E::memory_space>::accessible;

template <class E>
struct host_staging {
  using type = Kokkos::HostSpace;
};

#ifdef KOKKOS_ENABLE_CUDA
template <>
struct host_staging<Kokkos::Cuda> {
  using type = Kokkos::CudaHostPinnedSpace;
};
#endif

#ifdef KOKKOS_ENABLE_HIP
#if KOKKOS_VERSION >= 40000
template <>
struct host_staging<Kokkos::HIP> {
  using type = Kokkos::HIPHostPinnedSpace;
};
#else
template <>
struct host_staging<Kokkos::Experimental::HIP> {
  using type = Kokkos::Experimental::HIPHostPinnedSpace;
};
#endif
#endif

/// Page-locked host memory where the backend has it, plain host memory where not.
template <execution_space E>
using host_staging_space = typename host_staging<E>::type;

} // namespace oktopk::detail
