// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/core/error.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk {

/// Base of a communicator around another one: of `counted`, of `checked`, and of your own.
///
/// Passes on everything, time limits and `abort` where the inner one has them. A derived class hides what it changes:
/// one that hides `isend` also hides `start` if bulk messages are to change alike (`start_one_by_one`), and one with
/// request types of its own hides all that starts a message, waits or cancels. Keeps a copy of the inner communicator.
template <communicator Comm>
class communicator_decorator {
public:
  using request = typename Comm::request;
  using bulk_request = typename Comm::bulk_request;

  static constexpr bool tells_sizes = Comm::tells_sizes;
  static constexpr bool ordered_by_instance = Comm::ordered_by_instance;

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }
  bool takes_other_threads() const { return oktopk::takes_other_threads(inner_); }

  void begin_operation(std::string_view name, std::int64_t number) { oktopk::begin_operation(inner_, name, number); }

  /// One limit, or those of two halves (`paired_time_limits`).
  template <class Limit>
  void set_time_limit(Limit const& limit)
    requires requires(Comm& comm) { comm.set_time_limit(limit); }
  {
    inner_.set_time_limit(limit);
  }

  auto time_limits() const
    requires requires(Comm const& comm) { comm.time_limits(); }
  {
    return inner_.time_limits();
  }

  std::chrono::nanoseconds time_limit() const
    requires requires(Comm const& comm) { comm.time_limit(); }
  {
    return inner_.time_limit();
  }

  void abort(error const& why) noexcept
    requires requires(Comm& comm) { comm.abort(why); }
  {
    inner_.abort(why);
  }

  template <class MemorySpace>
  bool can_access() const {
    return inner_.template can_access<MemorySpace>();
  }

  request isend(std::span<std::byte const> out, int peer, phase use) { return inner_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, phase use) { return inner_.irecv(in, peer, use); }

  template <execution_space E>
  void start(E const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    inner_.start(exec, messages, requests);
  }

  void wait_all(std::span<request> requests) { inner_.wait_all(requests); }

  void wait_all(std::span<bulk_request> requests)
    requires(!std::same_as<request, bulk_request>)
  {
    inner_.wait_all(requests);
  }

  void cancel(std::span<request> requests) noexcept { inner_.cancel(requests); }

  void cancel(std::span<bulk_request> requests) noexcept
    requires(!std::same_as<request, bulk_request>)
  {
    inner_.cancel(requests);
  }

  template <class T>
  void allreduce(std::span<T> values, reduction op, phase use) {
    inner_.allreduce(values, op, use);
  }

  Comm& inner() { return inner_; }

protected:
  explicit communicator_decorator(Comm inner) : inner_(std::move(inner)) {}
  ~communicator_decorator() = default;
  communicator_decorator(communicator_decorator const&) = default;
  communicator_decorator(communicator_decorator&&) noexcept(std::is_nothrow_move_constructible_v<Comm>) = default;
  communicator_decorator& operator=(communicator_decorator const&) = default;
  communicator_decorator&
  operator=(communicator_decorator&&) noexcept(std::is_nothrow_move_assignable_v<Comm>) = default;

  Comm inner_;
};

namespace detail {

/// Lends requests that are parts of others to one wait of the inner communicator, for it to see them together, under
/// one time limit; they are back where they were when this goes out of scope.
///
/// Appends to `storage`, which outlives this and is not made longer meanwhile but by others of these.
template <class Request, class Inner>
class lent_requests {
  using part_type = Inner Request::*; // by name, or nvcc writes parentheses that g++ warns of

public:
  lent_requests(std::span<Request> requests, part_type part, std::vector<Inner>& storage)
      : requests_(requests), part_(part), storage_(storage), first_(storage.size()) {
    storage_.reserve(first_ + requests_.size()); // throws before anything is moved
    for (Request& each : requests_) {
      storage_.push_back(std::move(each.*part_));
    }
  }

  ~lent_requests() {
    for (std::size_t i = 0; i < requests_.size(); ++i) {
      requests_[i].*part_ = std::move(storage_[first_ + i]);
    }
  }

  lent_requests& operator=(lent_requests&&) = delete;

private:
  std::span<Request> requests_;
  part_type part_;
  std::vector<Inner>& storage_;
  std::size_t first_;
};

} // namespace detail

} // namespace oktopk
