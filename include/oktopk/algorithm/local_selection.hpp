// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/base.hpp>
#include <oktopk/algorithm/options.hpp>
#include <oktopk/comm/call_context.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace oktopk {

namespace detail {

/// The state of a scheme that only selects locally, from one iteration to the next; a plain value.
template <gradient_value Value, selector LocalSelector>
struct selection_state {
  std::int64_t iteration = 0;
  typename LocalSelector::template state<Value> local;

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

/// All that Ok-Topk carries from one iteration to the next; a plain value.
template <gradient_value Value, selector LocalSelector, class GlobalSelector>
struct ok_topk_state {
  std::int64_t iteration = 0;
  typename LocalSelector::template state<Value> local;
  typename GlobalSelector::template state<Value> global;
  std::vector<std::int64_t> boundaries; ///< P+1 of them once there was a call

  static std::string type_name() {
    return "ok_topk (local " + std::string(LocalSelector::name()) + ", global " + std::string(GlobalSelector::name()) +
           ", " + std::to_string(8 * sizeof(Value)) + "-bit values)";
  }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    LocalSelector::template state<Value>::each_part(state.local, visit);
    GlobalSelector::template state<Value>::each_part(state.global, visit);
    visit(state.boundaries);
  }
};

template <class Policies>
using selection_state_of = selection_state<typename Policies::format::value_type, typename Policies::local_selector>;

template <class Policies>
using ok_topk_state_of = ok_topk_state<typename Policies::format::value_type, typename Policies::local_selector,
                                       typename Policies::global_selector>;

} // namespace detail

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

  /// Most entries that a rank selects, or nothing where nobody can tell; the same on all ranks.
  std::optional<std::int64_t> most_selected(std::int64_t k, std::int64_t length) const {
    return selector_.bounded() ? std::optional(std::min(selector_.capacity(k, length), length)) : std::nullopt;
  }

  /// The most entries that a rank selects, for bounds: k, or what this rank selected in its last call where that is
  /// more and nothing bounds it.
  std::int64_t most_sent(std::int64_t k) const { return selector_.bounded() ? k : std::max(k, selected_); }

  /// Gives the selection, valid until the next run; empty where this rank has a fault.
  template <communicator Comm, class Input>
  entries_type run(call_context<E, Comm>& call, Input const& accumulator, state_type& state) {
    detail::profiling_region const profiled("oktopk::local_selection");
    detail::stopwatch const timed(call.statistics.select_seconds);
    call.note(detail::check_accumulator(accumulator, call.length));
    if (call.faults) {
      return {};
    }
    auto const source = detail::as_source<index_type, value_type, E>(accumulator);
    selection_context<E, index_type, value_type, detail::one_rank> const context{call.exec, call.k, call.iteration,
                                                                                 alone_, workspace_};
    auto const chosen = selector_.select(context, source, state);
    // The largest magnitudes are selected, and nothing is larger than what is not finite. Only where nothing is
    // selected must all values be looked at.
    if (chosen.entries.size() > 0 && chosen.checked) {
      call.note(chosen.not_finite < 0 ? detail::fault_report()
                                      : detail::fault_report{fault::non_finite, chosen.not_finite});
    } else if (chosen.entries.size() > 0) {
      call.note(detail::non_finite_in(call.exec, chosen.entries, detail::fault_subject::value));
    } else if (std::int64_t const bad =
                   detail::first_non_finite<E, value_type>(call.exec, source.materialized().values);
               bad < call.length) {
      call.note({fault::non_finite, bad});
    }
    if (call.faults) {
      return {};
    }
    selected_ = chosen.entries.size();
    call.statistics.local_selected = selected_;
    call.statistics.local_reevaluated = chosen.reevaluated;
    return chosen.entries;
  }

private:
  LocalSelector selector_;
  std::int64_t selected_ = 0;
  detail::one_rank alone_;
  detail::selection_workspace<index_type, value_type, E> workspace_;
};

/// Common part of the algorithms that select k entries: `algorithm_base` for the values and indices of a sparse format,
/// the agreement on what is selected, the selector, and another k from call to call.
template <class E, class Comm, class Policies, template <class> class StateOf = detail::selection_state_of>
class selecting_base : public detail::algorithm_base<E, Comm, typename Policies::format::index_type,
                                                     typename Policies::format::value_type, StateOf<Policies>> {
  using base = typename selecting_base::algorithm_base;

public:
  /// Selects another number of entries from the next call on, in [0, length]. Collective; an `error` on every rank
  /// where it is out of range or differs between ranks, and k is then as before. States and residuals go on. A reused
  /// threshold is kept until it is due or leaves its band around k.
  void set_k(std::int64_t k) {
    agreement terms("set_k");
    std::int64_t const resolved = detail::resolve_k(base::length_, k, std::nullopt, terms);
    terms.fact("k", resolved).check_on(base::comm_);
    base::k_ = resolved;
  }

protected:
  using format_type = typename Policies::format;
  using local_selector_type = typename Policies::local_selector;

  /// Collective: ranks agree on length, k, format and local selector, and on the facts of `more(agreement)`.
  template <class Options, class More>
  selecting_base(E exec, Comm comm, Options const& how, char const* scheme, More const& more)
      : base(std::move(exec), std::move(comm), how.length, scheme),
        local_selection_(local_selector_type(how.local_select)) {
    agreement terms(scheme);
    detail::check_length<typename format_type::index_type>(how.length, terms);
    base::k_ = detail::resolve_k(how.length, how.k, how.density, terms);
    terms.fact("length", how.length).fact("k", base::k_);
    if constexpr (requires { how.format; }) {
      terms.fact("format", format_type(how.format).name()); // of a copy: g++ 12 takes a temporary for uninitialised
    } else {
      terms.fact("format", format_type().name());
    }
    detail::check_policy("local selector", local_selection_.selector(), terms);
    more(terms);
    terms.check_on(base::comm_);
  }

  template <class Options>
  selecting_base(E exec, Comm comm, Options const& how, char const* scheme)
      : selecting_base(std::move(exec), std::move(comm), how, scheme, [](agreement&) {}) {}

  ~selecting_base() = default;

  local_selection<E, format_type, local_selector_type> local_selection_;
};

} // namespace oktopk
