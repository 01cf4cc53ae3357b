// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/instance.hpp>

#include <string>
#include <utility>

namespace oktopk::detail {

/// A place among the work that was enqueued on an instance of a device: one event, made by the first `record` for the
/// device that is current then.
///
/// Both functions throw an `error` (fault::communication) where the device returns an error.
template <execution_space E>
  requires has_stream<E>
class instance_mark {
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

} // namespace oktopk::detail
