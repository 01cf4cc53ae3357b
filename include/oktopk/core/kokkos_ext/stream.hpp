// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

// The queue of a device under an execution-space instance.
namespace oktopk::detail {

/// Whether the instances of an execution space have a stream that other libraries of the same device can enqueue on.
template <execution_space E>
inline constexpr bool has_stream = false;

/// The stream of an instance, of those that have one.
template <execution_space E>
  requires(!has_stream<E>)
void stream_of(E const&) = delete;

#ifdef KOKKOS_ENABLE_CUDA
template <>
inline constexpr bool has_stream<Kokkos::Cuda> = true;

inline cudaStream_t stream_of(Kokkos::Cuda const& exec) {
  return exec.cuda_stream();
}
#endif

#ifdef KOKKOS_ENABLE_HIP
#if KOKKOS_VERSION >= 40000
using hip_space = Kokkos::HIP;
#else
using hip_space = Kokkos::Experimental::HIP;
#endif

template <>
inline constexpr bool has_stream<hip_space> = true;

inline hipStream_t stream_of(hip_space const& exec) {
  return exec.hip_stream();
}
#endif

} // namespace oktopk::detail
