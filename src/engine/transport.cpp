// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The one place that knows how ranks of the engine reach each other.

#include "engine/transport.hpp"

#include "engine/thread_ranks.hpp"

#include <oktopk/comm/self.hpp>
#ifdef OKTOPK_ENGINE_WITH_GLOO
#include <oktopk/gloo.hpp>
#endif

namespace oktopk::detail {

namespace {

#ifdef OKTOPK_ENGINE_WITH_GLOO
constexpr bool has_sockets = true;

transport meet_by_sockets(group_terms const& terms) {
  launch_unlock const lent; // the others may be threads of this process
  gloo_options how{terms.time_limit};
  std::istringstream names(terms.interface_name);
  for (std::string name; std::getline(names, name, ',');) {
    how.links.push_back(name);
  }
  auto const store =
      terms.set ? gloo_store{terms.set, terms.get} : gloo_store::in_folder(terms.folder, terms.time_limit);
  auto made = gloo_communicator::rendezvous(store, terms.name, terms.rank, terms.size, how);
  return {made, [made](error const& why) { made.abort_soon(why); }};
}
#else
constexpr bool has_sockets = false;

transport meet_by_sockets(group_terms const&) {
  throw error(fault::option_out_of_range, "this engine was built without Gloo, so ranks are threads of one process");
}
#endif

transport meet_in_process(group_terms const& terms) {
  if (!launches_from_any_thread<Kokkos::DefaultHostExecutionSpace>()) {
    throw error(fault::option_out_of_range,
                "this Kokkos launches kernels from one thread alone, so ranks are processes, and no threads");
  }
  thread_communicator made(terms.name, terms.rank, terms.size);
  made.set_time_limit(terms.time_limit);
  return {made,
          [meeting = made.meeting(), rank = terms.rank](error const& why) { meeting->give_up(rank, why.sentence()); }};
}

} // namespace

bool has_transport(transport_kind kind) noexcept {
  return kind == transport_kind::threads || has_sockets;
}

transport meet(group_terms const& terms) {
  if (terms.size == 1) {
    return {self_communicator(), [](error const&) {}};
  }
  return terms.transport == transport_kind::threads ? meet_in_process(terms) : meet_by_sockets(terms);
}

} // namespace oktopk::detail
