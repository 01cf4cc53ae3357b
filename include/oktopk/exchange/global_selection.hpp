// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/kokkos_ext/profiling_region.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/exchange/global_scope.hpp>
#include <oktopk/select/overflow.hpp>

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

namespace oktopk {

/// Selection of the k largest of all sums, each rank from those of its own region (Algorithm 1, lines 9 to 12, and the
/// cut that the paper leaves to balance_and_allgatherv).
template <execution_space E, communicator Comm, sparse_format Format, class GlobalSelector>
  requires global_selector<GlobalSelector, E, Comm, Format>
class global_selection {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using state_type = typename GlobalSelector::template state<value_type>;

  /// What every rank chose; entries and sizes are valid until the next run.
  struct result {
    entries_of<Format, E> entries;       ///< of this rank's region, ascending
    std::span<std::int64_t const> sizes; ///< the number of entries of each rank, the same on all ranks
  };

  explicit global_selection(GlobalSelector const& how) : selector_(how) {}

  GlobalSelector const& selector() const { return selector_; }

  /// Collective. `state` is the same on all ranks, before and after. `most_candidates`: no more sums than these on all
  /// ranks together; the same on every rank. A sum that overflows is a fault of its rank, thrown on every rank.
  result run(call_context<E, Comm>& call, entries_of<Format, E> sums, state_type& state, std::int64_t most_candidates) {
    detail::profiling_region const profiled("oktopk::global_selection");
    detail::stopwatch const timed(call.statistics.select_seconds);
    call.note(detail::non_finite_in(call.exec, sums, fault_subject::sum));
    global_scope<E, Comm, Format> everybody(call, most_candidates, scope_workspace_);
    selected const chosen = selector_.select(
        call.exec, candidates<index_type, value_type, typename E::memory_space>{sums.values, sums.indices}, call.k,
        call.iteration, state, everybody, workspace_);
    call.statistics.global_reevaluated = chosen.reevaluated;
    return {workspace_.entries(chosen.count), scope_workspace_.sizes};
  }

private:
  GlobalSelector selector_;
  selection_workspace<index_type, value_type, E> workspace_;
  global_scope_workspace<E, Comm, Format> scope_workspace_;
};

} // namespace oktopk
