// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/threads.hpp>
#include <oktopk/core/kokkos_ext/launch_turn.hpp>

#include <concepts>
#include <span>
#include <utility>

namespace oktopk {

/// A communicator that lends the turn to launch kernels to other threads of the process while it waits for messages.
///
/// For `bucketed` in a program whose own kernels run at the same time: without it the turn is kept from the first to
/// the last kernel of a call. Messages and their order are those of the inner communicator; copies share it.
template <communicator Comm>
class taking_turns {
public:
  using request = typename Comm::request;
  using bulk_request = typename Comm::bulk_request;
  static constexpr bool tells_sizes = Comm::tells_sizes;
  static constexpr bool ordered_by_instance = Comm::ordered_by_instance;

  explicit taking_turns(Comm inner) : inner_(std::move(inner)) {}

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }
  bool takes_other_threads() const { return oktopk::takes_other_threads(inner_); }

  request isend(std::span<std::byte const> out, int peer, phase use) { return inner_.isend(out, peer, use); }
  request irecv(std::span<std::byte> in, int peer, phase use) { return inner_.irecv(in, peer, use); }

  template <execution_space E>
  void start(E const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    inner_.start(exec, messages, requests);
  }

  void wait_all(std::span<request> requests) {
    launch_pause const lent;
    inner_.wait_all(requests);
  }

  void wait_all(std::span<bulk_request> requests)
    requires(!std::same_as<request, bulk_request>)
  {
    launch_pause const lent;
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
    launch_pause const lent;
    inner_.allreduce(values, op, use);
  }

  template <class MemorySpace>
  bool reaches() const {
    return inner_.template reaches<MemorySpace>();
  }

  Comm& inner() { return inner_; }

private:
  Comm inner_;
};

} // namespace oktopk
