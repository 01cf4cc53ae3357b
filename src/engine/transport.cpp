// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The one place that knows how ranks of the engine reach each other.

#include "engine/transport.hpp"

#include <oktopk/comm/self.hpp>
#ifdef OKTOPK_ENGINE_WITH_GLOO
#include <oktopk/gloo.hpp>
#endif

namespace oktopk::detail {

namespace {

#ifdef OKTOPK_ENGINE_WITH_GLOO
transport meet_by_sockets(group_terms const& terms) {
  launch_unlock const lent; // the others may be threads of this process
  gloo_options const how{terms.time_limit, gloo_links(terms.interface_name)};
  auto const store =
      terms.set ? gloo_store{terms.set, terms.get} : gloo_store::in_folder(terms.folder, terms.time_limit);
  auto made = gloo_communicator::rendezvous(store, terms.name, terms.rank, terms.size, how);
  return {made, [made](error const& why) { made.abort_soon(why); }};
}
#else
transport meet_by_sockets(group_terms const&) {
  throw error(fault::option_out_of_range, "this engine was built without Gloo, so a group has one rank");
}
#endif

} // namespace

bool has_sockets() noexcept {
#ifdef OKTOPK_ENGINE_WITH_GLOO
  return true;
#else
  return false;
#endif
}

transport meet(group_terms const& terms) {
  if (terms.size == 1) {
    return {self_communicator(), [](error const&) {}};
  }
  return meet_by_sockets(terms);
}

} // namespace oktopk::detail
