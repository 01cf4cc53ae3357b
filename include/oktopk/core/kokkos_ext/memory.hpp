// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <type_traits>

// The one place that names backends: which host memory a device copies to fastest, and what is a device at all.
namespace oktopk::detail {

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

/// Whose memory it is that the host cannot simply read; other devices than these are unknown to MPI libraries.
enum class device_family { unknown, cuda, hip };

template <class MemorySpace>
inline constexpr device_family family_of = device_family::unknown;

#ifdef KOKKOS_ENABLE_CUDA
template <>
inline constexpr device_family family_of<Kokkos::CudaSpace> = device_family::cuda;
#endif

#ifdef KOKKOS_ENABLE_HIP
#if KOKKOS_VERSION >= 40000
template <>
inline constexpr device_family family_of<Kokkos::HIPSpace> = device_family::hip;
#else
template <>
inline constexpr device_family family_of<Kokkos::Experimental::HIPSpace> = device_family::hip;
#endif
#endif

/// Page-locked host memory where the backend has it, plain host memory where not.
template <execution_space E>
using host_staging_space = typename host_staging<E>::type;

/// Whether kernels of `E` run beside the host program, in threads without number. Their memory may still be one that
/// the host can read, where a driver moves its pages.
template <execution_space E>
inline constexpr bool is_device =
    !Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename E::memory_space>::accessible ||
    !std::is_same_v<host_staging_space<E>, Kokkos::HostSpace>;

} // namespace oktopk::detail
