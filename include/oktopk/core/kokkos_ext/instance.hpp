// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>

#include <string>

// Execution-space instances: waiting for one, comparing two, and the queue of a device under one.
namespace oktopk::detail {

/// Waits for one execution-space instance, with a label where this Kokkos takes one (3.5 and later).
template <execution_space E>
void fence(E const& exec, char const* label) {
  if constexpr (requires { exec.fence(std::string(label)); }) {
    exec.fence(label);
  } else {
    exec.fence();
  }
}

/// True where kernels on `one` and on `other` run in the order in which they are launched. Kokkos before 4.0 does not
/// compare instances, so there the answer is false.
template <execution_space E>
bool same_instance([[maybe_unused]] E const& one, [[maybe_unused]] E const& other) {
  if constexpr (std::equality_comparable<E>) {
    return one == other;
  } else {
    return false;
  }
}

/// True for execution spaces whose instances have a stream, on which other libraries of the same device can enqueue.
template <execution_space E>
inline constexpr bool has_stream = false;

/// The stream of an instance, of those that have one.
template <execution_space E>
  requires(!has_stream<E>)
void stream_of(E const&) = delete;

/// The events of the device of an execution space that has streams: their types, and the functions of the device.
template <execution_space E>
struct device_events;

#ifdef KOKKOS_ENABLE_CUDA
template <>
inline constexpr bool has_stream<Kokkos::Cuda> = true;

inline cudaStream_t stream_of(Kokkos::Cuda const& exec) {
  return exec.cuda_stream();
}

template <>
struct device_events<Kokkos::Cuda> {
  using event_type = cudaEvent_t;
  using status_type = cudaError_t;
  static constexpr status_type success = cudaSuccess;
  static constexpr status_type not_ready = cudaErrorNotReady;

  static status_type create(event_type& event) { return cudaEventCreateWithFlags(&event, cudaEventDisableTiming); }
  static status_type destroy(event_type event) { return cudaEventDestroy(event); }
  static status_type record(event_type event, cudaStream_t stream) { return cudaEventRecord(event, stream); }
  static status_type query(event_type event) { return cudaEventQuery(event); }
  static std::string describe(status_type code) { return std::string("CUDA: ") + cudaGetErrorString(code); }
};
#endif

#ifdef KOKKOS_ENABLE_HIP
template <>
inline constexpr bool has_stream<kokkos_hip::HIP> = true;

inline hipStream_t stream_of(kokkos_hip::HIP const& exec) {
  return exec.hip_stream();
}

template <>
struct device_events<kokkos_hip::HIP> {
  using event_type = hipEvent_t;
  using status_type = hipError_t;
  static constexpr status_type success = hipSuccess;
  static constexpr status_type not_ready = hipErrorNotReady;

  static status_type create(event_type& event) { return hipEventCreateWithFlags(&event, hipEventDisableTiming); }
  static status_type destroy(event_type event) { return hipEventDestroy(event); }
  static status_type record(event_type event, hipStream_t stream) { return hipEventRecord(event, stream); }
  static status_type query(event_type event) { return hipEventQuery(event); }
  static std::string describe(status_type code) { return std::string("HIP: ") + hipGetErrorString(code); }
};
#endif

} // namespace oktopk::detail
