// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <cstddef>
#include <span>

namespace oktopk {

/// Starts a group of bulk messages as single ones: `start` for communicators whose transport runs on the host.
template <class Comm>
void start_one_by_one(Comm& comm, std::span<bulk_message const> messages,
                      std::span<typename Comm::bulk_request> requests) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    bulk_message const& each = messages[i];
    requests[i] = each.receives ? comm.irecv(each.bytes, each.peer, each.use)
                                : comm.isend(std::span<std::byte const>(each.bytes), each.peer, each.use);
  }
}

} // namespace oktopk
