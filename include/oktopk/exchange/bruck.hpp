// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/comm/message_group.hpp>
#include <oktopk/comm/revocation.hpp>

#include <algorithm>

namespace oktopk::detail {

/// Bruck's allgather for any P, in ceil(log2 P) messages: each brings as many parts as the rank has, and the last one those
/// that are left.
///
/// Parts lie one after the other in `bytes`, in an order of ranks that is the same on all of them up to a rotation: each has
/// its own part first, so that the parts to forward are always at the front. `parts` tells of them: `rank_at(place)`;
/// `begin(place)`, the begin of a part, and of the first that is not there; `room(first, last)`, the most bytes of several,
/// where 0 says that all ranks know that they are empty, and then no message is sent; `arrived(first, last, end)`, which
/// finds the begins of those that have come, before `end`. The own part is there.
template <execution_space E, communicator Comm, class Parts>
void bruck_allgather(call_context<E, Comm>& call, message_group<Comm>& messages, message_buffer<E> const& bytes,
                     message_size size, Parts&& parts) {
  cancel_on_unwind const guard(call.comm, messages.requests());
  int const ranks = call.comm.size();
  for (int have = 1; have < ranks; have *= 2) {
    int const moved = std::min(have, ranks - have);
    std::int64_t const begin = parts.begin(have);
    std::int64_t const room = parts.room(have, have + moved);
    messages.reset(2);
    if (room > 0) {
      messages.receive(bytes.wire(begin, room), parts.rank_at(have), phase::gather, size);
    }
    if (parts.begin(moved) > 0) {
      messages.send(bytes.wire(0, parts.begin(moved)), parts.rank_at(ranks - have), phase::gather, size);
    }
    messages.start(call.exec, call.comm);
    messages.wait_all(call.comm);
    parts.arrived(have, have + moved, begin + (room > 0 ? messages.bytes(0) : 0));
  }
}

} // namespace oktopk::detail
