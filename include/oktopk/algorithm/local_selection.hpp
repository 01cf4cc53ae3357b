// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/accumulator.hpp>
#include <oktopk/algorithm/concept.hpp>
#include <oktopk/core/fault_report.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/kernel/non_finite.hpp>
#include <oktopk/select/kernel/overflow.hpp>

#include <cstdint>
#include <string>

namespace oktopk {

/// What a scheme that only selects locally carries from one iteration to the next; a plain value.
template <gradient_value Value, selector LocalSelector>
struct selection_state {
  std::int64_t iteration = 0;
  typename LocalSelector::template state<Value> local;

  /// For `save` and `load`.
  static std::string type_name() {
    return "local selection (" + std::string(LocalSelector::name()) + ", " + std::to_string(8 * sizeof(Value)) +
           "-bit values)";
  }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    LocalSelector::template state<Value>::each_part(state.local, visit);
  }
};

/// The first step of every sparse scheme (Algorithm 1, lines 2 to 4): check the accumulator, select from it.
///
/// No communication. A fault is noted, not thrown: the caller must take part in the exchange with nothing selected, so
/// that every rank hears of it.
template <execution_space E, sparse_format Format, selector LocalSelector>
class local_selection {
public:
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<index_type, value_type, memory_space>;
  using state_type = typename LocalSelector::template state<value_type>;

  explicit local_selection(LocalSelector how) : selector_(how) {}

  LocalSelector const& selector() const { return selector_; }

  /// The selection, valid until the next call; empty where `mine` is or becomes a fault.
  template <class Input>
  entries_type run(E const& exec, Input const& accumulator, std::int64_t length, std::int64_t k, std::int64_t iteration,
                   state_type& state, fault_report& mine, call_statistics& statistics) {
    mine = detail::check_accumulator(accumulator, length);
    if (mine) {
      return {};
    }
    auto const source = detail::as_source<index_type, value_type, E>(accumulator);
    selection_context<E, index_type, value_type, one_rank> const context{exec, k, iteration, alone_, workspace_};
    auto const chosen = selector_.select(context, source, state);
    // The largest magnitudes are selected, and nothing is larger than what is not finite. Only where nothing is
    // selected must all values be looked at.
    if (chosen.entries.size() > 0) {
      mine = detail::non_finite_in(exec, chosen.entries, fault_subject::value);
    } else if (std::int64_t const bad = detail::first_non_finite<E, value_type>(exec, source.materialized().values);
               bad < length) {
      mine = {fault::non_finite, bad};
    }
    if (mine) {
      return {};
    }
    statistics.local_selected = chosen.entries.size();
    statistics.local_reevaluated = chosen.reevaluated;
    return chosen.entries;
  }

private:
  LocalSelector selector_;
  one_rank alone_;
  selection_workspace<index_type, value_type, E> workspace_;
};

} // namespace oktopk
