// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <stdexcept>
#include <string>
#include <utility>

// The queue of a device under an execution-space instance, and marks in it that the host can ask for.
namespace oktopk::detail {

/// Whether the instances of an execution space have a stream that other libraries of the same device can enqueue on.
template <execution_space E>
inline constexpr bool has_stream = false;

/// A place among the work that was enqueued on an instance.
///
/// A host space runs work at once or waits for it in every fence; its marks are always reached.
template <execution_space E>
class instance_mark {
public:
  void record(E const&) {}
  bool reached() const { return true; }
};

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

/// One event of CUDA, made by the first `record` for the device that is current then.
template <>
class instance_mark<Kokkos::Cuda> {
public:
  instance_mark() = default;
  instance_mark(instance_mark&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  instance_mark& operator=(instance_mark&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~instance_mark() {
    if (event_ != nullptr) {
      static_cast<void>(cudaEventDestroy(event_));
    }
  }

  void record(Kokkos::Cuda const& exec) {
    if (event_ == nullptr) {
      check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    }
    check(cudaEventRecord(event_, exec.cuda_stream()));
  }

  bool reached() const {
    cudaError_t const code = event_ == nullptr ? cudaSuccess : cudaEventQuery(event_);
    if (code != cudaErrorNotReady) {
      check(code);
    }
    return code == cudaSuccess;
  }

private:
  static void check(cudaError_t code) {
    if (code != cudaSuccess) {
      throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(code));
    }
  }

  cudaEvent_t event_ = nullptr;
};
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

/// One event of HIP, made by the first `record` for the device that is current then.
template <>
class instance_mark<hip_space> {
public:
  instance_mark() = default;
  instance_mark(instance_mark&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  instance_mark& operator=(instance_mark&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~instance_mark() {
    if (event_ != nullptr) {
      static_cast<void>(hipEventDestroy(event_));
    }
  }

  void record(hip_space const& exec) {
    if (event_ == nullptr) {
      check(hipEventCreateWithFlags(&event_, hipEventDisableTiming));
    }
    check(hipEventRecord(event_, exec.hip_stream()));
  }

  bool reached() const {
    hipError_t const code = event_ == nullptr ? hipSuccess : hipEventQuery(event_);
    if (code != hipErrorNotReady) {
      check(code);
    }
    return code == hipSuccess;
  }

private:
  static void check(hipError_t code) {
    if (code != hipSuccess) {
      throw std::runtime_error(std::string("HIP: ") + hipGetErrorString(code));
    }
  }

  hipEvent_t event_ = nullptr;
};
#endif

} // namespace oktopk::detail
