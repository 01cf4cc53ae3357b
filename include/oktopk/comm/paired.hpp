// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/time_limit.hpp>

#include <utility>

namespace oktopk {

/// A communicator made of two: one for control messages, one for bulk data, between the same ranks in the same order.
///
/// For transports that move only data of a device, such as NCCL: MPI, or any other control communicator, carries the
/// few numbers of the host. Keeps copies of both.
template <control_communicator Control, bulk_communicator Bulk>
  requires(!std::same_as<typename Control::request, typename Bulk::bulk_request>)
class paired {
public:
  using request = typename Control::request;
  using bulk_request = typename Bulk::bulk_request;
  static constexpr bool tells_sizes = Bulk::tells_sizes;
  static constexpr bool ordered_by_instance = Bulk::ordered_by_instance;

  paired(Control control, Bulk bulk) : control_(std::move(control)), bulk_(std::move(bulk)) {}

  int rank() const { return control_.rank(); }
  int size() const { return control_.size(); }
  bool takes_other_threads() const {
    return oktopk::detail::takes_other_threads(control_) && oktopk::detail::takes_other_threads(bulk_);
  }

  void begin_operation(std::string_view name, std::int64_t number) {
    oktopk::detail::begin_operation(control_, name, number);
    oktopk::detail::begin_operation(bulk_, name, number);
  }

  std::int64_t number_object() { return oktopk::detail::number_object(control_); }
  std::int64_t& untagged_objects() const
    requires requires(Control const& control) { ++control.untagged_objects(); }
  {
    return control_.untagged_objects();
  }

  void set_time_limit(std::chrono::nanoseconds limit)
    requires requires(Control& control, Bulk& bulk) {
      control.set_time_limit(limit);
      bulk.set_time_limit(limit);
    }
  {
    control_.set_time_limit(limit);
    bulk_.set_time_limit(limit);
  }

  /// Sets the limits of both halves, as `time_limits` returns them.
  template <class ControlLimits, class BulkLimits>
  void set_time_limit(std::pair<ControlLimits, BulkLimits> const& limits)
    requires requires(Control& control, Bulk& bulk) {
      control.set_time_limit(limits.first);
      bulk.set_time_limit(limits.second);
    }
  {
    control_.set_time_limit(limits.first);
    bulk_.set_time_limit(limits.second);
  }

  auto time_limits() const
    requires requires(Control const& control, Bulk const& bulk) {
      control.time_limit();
      bulk.time_limit();
    }
  {
    return std::pair{detail::time_limits_of(control_), detail::time_limits_of(bulk_)};
  }

  /// The limit of the bulk half.
  std::chrono::nanoseconds time_limit() const
    requires requires(Bulk const& bulk) { bulk.time_limit(); }
  {
    return bulk_.time_limit();
  }

  /// Calls `abort` of the control half, which tells the other ranks for both.
  void abort(error const& why) noexcept
    requires requires(Control& control) { control.abort(why); }
  {
    control_.abort(why);
  }

  request isend(std::span<std::byte const> out, int peer, phase use) { return control_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, phase use) { return control_.irecv(in, peer, use); }
  void wait_all(std::span<request> requests) { control_.wait_all(requests); }

  template <execution_space E>
  void start(E const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    bulk_.start(exec, messages, requests);
  }

  void wait_all(std::span<bulk_request> requests) { bulk_.wait_all(requests); }

  /// Ends messages of one kind; afterwards neither half can be used.
  void cancel(std::span<request> requests) noexcept {
    control_.cancel(requests);
    bulk_.cancel(std::span<bulk_request>());
  }

  void cancel(std::span<bulk_request> requests) noexcept {
    control_.cancel(std::span<request>());
    bulk_.cancel(requests);
  }

  template <class T>
  void allreduce(std::span<T> values, reduction op, phase use) {
    bulk_.allreduce(values, op, use);
  }

  template <class MemorySpace>
  bool can_access() const {
    return bulk_.template can_access<MemorySpace>();
  }

  Control& control() { return control_; }
  Bulk& bulk() { return bulk_; }

private:
  Control control_;
  Bulk bulk_;
};

} // namespace oktopk
