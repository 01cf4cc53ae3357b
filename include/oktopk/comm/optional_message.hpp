// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <span>

// Messages that there may be none of: an empty piece of a vector is not sent.
namespace oktopk::detail {

/// Waits for one message, if it is under way.
template <communicator Comm>
void wait_for(Comm& comm, typename Comm::request& one) {
  if (one.active()) {
    comm.wait_all(std::span<typename Comm::request>(&one, 1));
  }
}

/// Waits for a message that nobody else has.
template <communicator Comm>
void finish(Comm& comm, typename Comm::request one) {
  cancel_on_unwind const guard(comm, one);
  wait_for(comm, one);
}

/// Starts a message; none where there is nothing to send.
template <communicator Comm>
typename Comm::request start_send(Comm& comm, std::span<std::byte const> out, int peer, phase use) {
  return out.empty() ? typename Comm::request() : comm.isend(out, peer, use);
}

template <communicator Comm>
typename Comm::request start_receive(Comm& comm, std::span<std::byte> in, int peer, phase use) {
  return in.empty() ? typename Comm::request() : comm.irecv(in, peer, use);
}

} // namespace oktopk::detail
