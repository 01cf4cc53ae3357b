// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <utility>

namespace oktopk {

/// A communicator made of two: one for control messages, one for bulk data, between the same ranks in the same order.
///
/// For transports that move only data of a device, such as NCCL: MPI, or any other control communicator, carries the
/// few numbers of the host. Keeps copies of both.
template <control_communicator Control, bulk_communicator Bulk>
  requires(!std::same_as<typename Control::request, typename Bulk::bulk_request>)
class paired : public communicator_base {
public:
  using request = typename Control::request;
  using bulk_request = typename Bulk::bulk_request;
  static constexpr bool tells_sizes() { return Bulk::tells_sizes(); }
  static constexpr bool ordered_by_instance() { return Bulk::ordered_by_instance(); }

  paired(Control control, Bulk bulk) : control_(std::move(control)), bulk_(std::move(bulk)) {}

  int rank() const { return control_.rank(); }
  int size() const { return control_.size(); }
  bool takes_other_threads() const { return control_.takes_other_threads() && bulk_.takes_other_threads(); }

  void begin_operation(std::string_view name, std::int64_t number) {
    control_.begin_operation(name, number);
    bulk_.begin_operation(name, number);
  }

  std::int64_t number_object() { return control_.number_object(); }
  std::int64_t* untagged_objects() const { return control_.untagged_objects(); }

  /// The limits of the control and of the bulk half.
  time_limit_pair time_limits() const { return {control_.time_limits().first, bulk_.time_limits().second}; }
  void set_time_limits(time_limit_pair const& both) {
    static_cast<void>(time_limits()); // an error where a half has none, before the other half is changed
    control_.set_time_limits({both.first, both.first});
    bulk_.set_time_limits({both.second, both.second});
  }

  /// The limit of the bulk half; sets that of both.
  std::chrono::nanoseconds time_limit() const { return time_limits().second; }
  void set_time_limit(std::chrono::nanoseconds limit) { set_time_limits({limit, limit}); }

  /// Calls `abort` of the control half, which tells the other ranks for both.
  void abort(error const& why) noexcept { control_.abort(why); }

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
