// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/exchange/all_ranks.hpp>
#include <oktopk/exchange/concept.hpp>
#include <oktopk/select/kernel/non_finite.hpp>

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
  using selection_type = selection<index_type, value_type, typename E::memory_space>;

  explicit global_selection(GlobalSelector const& how) : selector_(how) {}

  GlobalSelector const& selector() const { return selector_; }

  /// Collective. Gives the entries of this rank's region and the counts of all ranks, valid until the next run. `state`
  /// is the same on all ranks, before and after. `most_candidates`: no more sums than these on all ranks together; the
  /// same on every rank. A sum that overflows is a fault of its rank, thrown on every rank; `checked` says that it
  /// would have been noted already.
  selection_type run(call_context<E, Comm>& call, entries_of<Format, E> sums, state_type& state,
                     std::int64_t most_candidates, bool checked = false) {
    detail::profiling_region const profiled("oktopk::global_selection");
    detail::stopwatch const timed(call.statistics.select_seconds);
    if (!checked) {
      call.note(detail::non_finite_in(call.exec, sums, fault_subject::sum));
    }
    all_ranks<E, Comm, Format> everybody(call, most_candidates, all_ranks_workspace_);
    selection_context<E, index_type, value_type, all_ranks<E, Comm, Format>> const context{
        call.exec, call.k, call.iteration, everybody, workspace_};
    auto chosen = selector_.select(context, candidates<index_type, value_type, typename E::memory_space>(sums), state);
    call.statistics.global_reevaluated = chosen.reevaluated;
    return chosen;
  }

private:
  GlobalSelector selector_;
  selection_workspace<index_type, value_type, E> workspace_;
  all_ranks_workspace<E, Comm, Format> all_ranks_workspace_;
};

} // namespace oktopk
