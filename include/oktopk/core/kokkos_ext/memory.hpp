// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

// The memory of devices: the host memory that a device copies to fastest, and what counts as a device at all.
namespace oktopk::detail {

#ifdef KOKKOS_ENABLE_HIP
#if KOKKOS_VERSION >= 40000
namespace kokkos_hip = Kokkos;
#else
namespace kokkos_hip = Kokkos::Experimental;
#endif
#endif

template <class E>
struct host_staging {
  using type = Kokkos::HostSpace;
};

/// The kind of device that the memory belongs to; MPI libraries know no others than these.
enum class device_family { unknown, cuda, hip };

template <class MemorySpace>
inline constexpr device_family family_of = device_family::unknown;

#ifdef KOKKOS_ENABLE_CUDA
template <>
struct host_staging<Kokkos::Cuda> {
  using type = Kokkos::CudaHostPinnedSpace;
};

template <>
inline constexpr device_family family_of<Kokkos::CudaSpace> = device_family::cuda;
#endif

#ifdef KOKKOS_ENABLE_HIP
template <>
struct host_staging<kokkos_hip::HIP> {
  using type = kokkos_hip::HIPHostPinnedSpace;
};

template <>
inline constexpr device_family family_of<kokkos_hip::HIPSpace> = device_family::hip;
#endif

/// Page-locked host memory where the backend has it, plain host memory where not.
template <execution_space E>
using host_staging_space = typename host_staging<E>::type;

/// Kernels of `E` run beside the host program, in very many threads. The host may still be able to read their memory,
/// where a driver moves its pages.
template <execution_space E>
inline constexpr bool is_device =
    !Kokkos::SpaceAccessibility<Kokkos::HostSpace, typename E::memory_space>::accessible ||
    !std::is_same_v<host_staging_space<E>, Kokkos::HostSpace>;

} // namespace oktopk::detail
