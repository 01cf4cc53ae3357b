// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <span>
#include <vector>

// Points that no rank passes before all have come to them (Gloo's `barrier_all_to_all` and `barrier_all_to_one`). Host
// work only: what is enqueued on an execution space is not waited for.
namespace oktopk {

namespace detail {

/// Sends a byte to, and awaits one from, every rank but this one.
template <communicator Comm>
void notify_all(Comm& comm, bool send, bool receive, phase use) {
  std::byte const mine{1};
  auto const ranks = static_cast<std::size_t>(comm.size());
  std::vector<std::byte> theirs(ranks);
  std::vector<typename Comm::request> requests;
  requests.reserve(2 * ranks);
  cancel_on_unwind const guard(comm, requests);
  // Each rank begins with its next neighbour, so that not all turn to the same one at once.
  for (int step = 1; step < comm.size(); ++step) {
    int const below = (comm.rank() + comm.size() - step) % comm.size();
    int const above = (comm.rank() + step) % comm.size();
    if (receive) {
      requests.push_back(comm.irecv(std::span(&theirs[static_cast<std::size_t>(below)], 1), below, use));
    }
    if (send) {
      requests.push_back(comm.isend(std::span(&mine, 1), above, use));
    }
  }
  comm.wait_all(std::span<typename Comm::request>(requests));
}

} // namespace detail

/// Every rank tells every other one: one step, P-1 messages of one byte each way. Collective.
template <communicator Comm>
void barrier_all_to_all(Comm& comm, phase use = phase::control) {
  detail::notify_all(comm, true, true, use);
}

/// Every rank tells `root`, the same on all ranks, which then tells everyone: two steps, one message of one byte each
/// way, P-1 at the root. Collective.
template <communicator Comm>
void barrier_all_to_one(Comm& comm, int root = 0, phase use = phase::control) {
  if (comm.rank() == root) {
    cancel_on_unwind const guard(comm); // between the steps, too
    detail::notify_all(comm, false, true, use);
    detail::notify_all(comm, true, false, use);
    return;
  }
  std::byte here{1};
  typename Comm::request one;
  cancel_on_unwind const guard(comm, one);
  one = comm.isend(std::span<std::byte const>(&here, 1), root, use);
  comm.wait_all(std::span(&one, 1));
  one = comm.irecv(std::span(&here, 1), root, use);
  comm.wait_all(std::span(&one, 1));
}

} // namespace oktopk
