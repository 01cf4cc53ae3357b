// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/stream.hpp>

#include <string>
#include <utility>

// Marks in the queue of an execution-space instance that the host can ask for.
namespace oktopk::detail {

/// The events of the device of an execution space that has streams: their types, and the functions of the device.
template <execution_space E>
struct device_events;

/// A place among the work that was enqueued on an instance.
///
/// A host space runs work at once or waits for it in every fence; its marks are always reached.
template <execution_space E>
class instance_mark {
public:
  void record(E const&) {}
  bool reached() const { return true; }
};

/// On a device: one event, made by the first `record` for the device that is current then.
///
/// Both functions throw an `error` (fault::communication) where the device returns an error.
template <execution_space E>
  requires has_stream<E>
class instance_mark<E> {
  using events = device_events<E>;

public:
  instance_mark() = default;
  instance_mark(instance_mark&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  instance_mark& operator=(instance_mark&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~instance_mark() {
    if (event_ != nullptr) {
      static_cast<void>(events::destroy(event_));
    }
  }

  void record(E const& exec) {
    if (event_ == nullptr) {
      check(events::create(event_));
    }
    check(events::record(event_, stream_of(exec)));
  }

  bool reached() const {
    auto const code = event_ == nullptr ? events::success : events::query(event_);
    if (code != events::not_ready) {
      check(code);
    }
    return code == events::success;
  }

private:
  static void check(typename events::status_type code) {
    if (code != events::success) {
      throw error(fault::communication, events::describe(code));
    }
  }

  typename events::event_type event_ = nullptr;
};

#ifdef KOKKOS_ENABLE_CUDA
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
struct device_events<hip_space> {
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
