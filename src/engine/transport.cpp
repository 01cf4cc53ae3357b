// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The one place that knows how ranks of the engine reach each other.

#include "engine/transport.hpp"

#include <oktopk/comm/self.hpp>
#include <oktopk/tcp.hpp>

namespace oktopk::detail {

transport meet(group_terms const& terms) {
  if (terms.size == 1) {
    return {self_communicator(), [](error const&) {}};
  }
  launch_unlock const lent; // the others may be threads of this process
  tcp_options const how{terms.time_limit, links_of(terms.interface_name)};
  auto const store =
      terms.set ? rendezvous_store{terms.set, terms.get} : rendezvous_store::in_folder(terms.folder, terms.time_limit);
  auto made = tcp_communicator::rendezvous(store, terms.name, terms.rank, terms.size, how);
  return {made, [made](error const& why) { made.abort_soon(why); }};
}

} // namespace oktopk::detail
