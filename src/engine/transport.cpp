// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The one place that knows how ranks of the engine reach each other.

#include "engine/transport.hpp"

#include "engine/thread_ranks.hpp"

#include <oktopk/comm/self.hpp>

namespace oktopk::detail {

bool has_transport(transport_kind kind) noexcept {
  return kind == transport_kind::threads;
}

transport meet(group_terms const& terms) {
  if (terms.size == 1) {
    return {self_communicator(), [](error const&) {}};
  }
  if (terms.transport == transport_kind::threads) {
    if (!launches_from_any_thread<Kokkos::DefaultHostExecutionSpace>()) {
      throw error(fault::option_out_of_range,
                  "this Kokkos launches kernels from one thread alone, so ranks are no threads");
    }
    thread_communicator made(terms.name, terms.rank, terms.size);
    made.set_time_limit(terms.time_limit);
    return {made, [meeting = made.meeting(), rank = terms.rank](error const& why) {
              meeting->give_up(rank, why.sentence());
            }};
  }
  throw error(fault::option_out_of_range, "this engine has no sockets: ranks are threads of one process");
}

} // namespace oktopk::detail
