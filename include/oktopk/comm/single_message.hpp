// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <span>

// Bulk messages that start one by one, of sizes that both sides know. An empty piece of a vector is not sent.
namespace oktopk::detail {

/// Starts one bulk message; none where there is nothing to move. The caller has waited for what touches its bytes.
template <execution_space E, communicator Comm>
typename Comm::bulk_request start_single(E const& exec, Comm& comm, bulk_message const& message) {
  static_assert(!Comm::ordered_by_instance,
                "oktopk: the textbook allreduces need messages that do not wait for each other; over a transport that "
                "orders groups by its instance use native_allreduce");
  typename Comm::bulk_request request{};
  if (!message.bytes.empty()) {
    comm.start(exec, std::span(&message, 1), std::span(&request, 1));
  }
  return request;
}

template <execution_space E, communicator Comm>
typename Comm::bulk_request start_send(E const& exec, Comm& comm, std::span<std::byte> out, int peer, phase use) {
  return start_single(exec, comm, {out, peer, use, false});
}

template <execution_space E, communicator Comm>
typename Comm::bulk_request start_receive(E const& exec, Comm& comm, std::span<std::byte> in, int peer, phase use) {
  return start_single(exec, comm, {in, peer, use, true});
}

/// Waits for one message, if it is under way.
template <communicator Comm>
void wait_for(Comm& comm, typename Comm::bulk_request& one) {
  if (one.active()) {
    comm.wait_all(std::span<typename Comm::bulk_request>(&one, 1));
  }
}

/// Waits for a message whose request is stored nowhere else.
template <communicator Comm>
void finish(Comm& comm, typename Comm::bulk_request one) {
  cancel_on_unwind const guard(comm, one);
  wait_for(comm, one);
}

} // namespace oktopk::detail
