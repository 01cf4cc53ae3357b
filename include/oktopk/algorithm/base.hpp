// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/collective_base.hpp>
#include <oktopk/algorithm/concept.hpp>
#include <oktopk/exchange/allgatherv.hpp>
#include <oktopk/format/concept.hpp>
#include <oktopk/select/concept.hpp>

#include <algorithm>
#include <utility>

namespace oktopk {

namespace detail {

/// Base of every gradient allreduce: all members that `gradient_allreduce` asks for, except the bound and the call
/// operator.
template <class E, class Comm, class Index, class Value, class State>
class algorithm_base : public collective_base<E, Comm, State, sparse_update<Index, Value, typename E::memory_space>> {
  using base = typename algorithm_base::collective_base;

public:
  using index_type = Index;
  using value_type = Value;
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;
  using update_type = sparse_update<Index, Value, memory_space>;

  std::int64_t k() const { return k_; }

  /// For algorithms that promise no more.
  template <class Options>
  static allreduce_promises promises(Options const&) {
    return {};
  }

protected:
  algorithm_base(E exec, Comm comm, std::int64_t length, char const* scheme)
      : base(std::move(exec), std::move(comm), length, scheme), k_(length) {}
  ~algorithm_base() = default;

  /// For `fail` of an algorithm, which is `self`: its call, to which this rank comes with a fault and no accumulator.
  template <class Algorithm>
  void fail_in(Algorithm& self, fault_report const& why) {
    base::bring(why);
    // With a fault no algorithm reads the accumulator.
    auto const size = static_cast<std::size_t>(base::length_);
    self(view_of_any_stride<Value, E>(nullptr, Kokkos::LayoutStride(size, 1)));
  }

  template <class Steps>
  update_type const& make_call(char const* region, Steps const& steps) {
    return base::make_call(region, k_, steps);
  }

  std::int64_t k_;
};

/// The state of a scheme that selects only locally, from one iteration to the next; a plain value.
template <gradient_value Value, selector LocalSelector>
struct selection_state : call_state {
  typename LocalSelector::template state<Value> local;

  void check(agreement& terms, int, std::int64_t) const { check_selector("local", local, iteration, terms); }

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
template <gradient_value Value, selector LocalSelector, class Deliverer>
struct ok_topk_state : call_state {
  typename LocalSelector::template state<Value> local;
  typename Deliverer::template state<Value> global;
  std::vector<std::int64_t> boundaries; ///< P+1 of them; none before the first call, and after one of uneven regions

  void check(agreement& terms, int ranks, std::int64_t length) const {
    auto const& list = boundaries;
    if (!list.empty() && (list.size() != static_cast<std::size_t>(ranks) + 1 || list.front() != 0 ||
                          list.back() != length || !std::is_sorted(list.begin(), list.end()))) {
      terms.note(fault::bad_state, "the saved boundaries are of another length or number of ranks, or damaged");
    }
    for (std::int64_t const boundary : list) {
      terms.fact("boundary", boundary);
    }
    check_selector("local", local, iteration, terms);
    check_selector("global", global, iteration, terms);
    global.list_facts(terms);
  }

  void forget_ranks() { boundaries.clear(); }

  static std::string type_name() {
    return "ok_topk (local " + std::string(LocalSelector::name()) + ", global " + std::string(Deliverer::name()) +
           ", " + std::to_string(8 * sizeof(Value)) + "-bit values)";
  }

  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iteration);
    LocalSelector::template state<Value>::each_part(state.local, visit);
    Deliverer::template state<Value>::each_part(state.global, visit);
    visit(state.boundaries);
  }
};

template <class Policies>
using selection_state_of = selection_state<typename Policies::format::value_type, typename Policies::local_selector>;

template <class Policies>
using ok_topk_state_of = ok_topk_state<typename Policies::format::value_type, typename Policies::local_selector,
                                       typename Policies::deliverer>;

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

  /// The most entries that a rank selects; nothing if the selector has no bound. The same on all ranks.
  std::optional<std::int64_t> most_selected(std::int64_t k, std::int64_t length) const {
    return selector_.bounded() ? std::optional(std::min(selector_.capacity(k, length), length)) : std::nullopt;
  }

  /// The most entries that a rank selects, for bounds: k. If the selector has no bound and this rank selected more in
  /// its last call: that number.
  std::int64_t most_sent(std::int64_t k) const { return selector_.bounded() ? k : std::max(k, selected_); }

  /// Returns the selection, valid until the next run; empty if this rank has a fault.
  template <communicator Comm, class Input>
  contribution<Format, E> run(call_context<E, Comm>& call, Input const& accumulator, state_type& state) {
    profiling_region const profiled("oktopk::local_selection");
    stopwatch const timed(call.statistics.select_seconds);
    auto const most = most_selected(call.k, call.length);
    call.note(check_accumulator(accumulator, call.length));
    if (call.faults) {
      return {{}, most};
    }
    auto const source = as_source<index_type, value_type, E>(accumulator);
    selection_context<E, index_type, value_type, one_rank> const context{call.exec, call.k, call.iteration, alone_,
                                                                         workspace_};
    auto const chosen = selector_.select(context, source, state);
    // The largest magnitudes are selected, and a value that is not finite has the largest one. So all values must be
    // checked only if nothing is selected.
    if (chosen.entries.size() > 0 && chosen.checked) {
      call.note(chosen.not_finite < 0 ? fault_report() : fault_report{fault::non_finite, chosen.not_finite});
    } else if (chosen.entries.size() > 0) {
      call.note(non_finite_in(call.exec, chosen.entries, fault_subject::value));
    } else if (std::int64_t const bad = first_non_finite<E, value_type>(call.exec, source.materialized().values);
               bad < call.length) {
      call.note({fault::non_finite, bad});
    }
    if (call.faults) {
      return {{}, most};
    }
    selected_ = chosen.entries.size();
    call.statistics.local_selected = selected_;
    call.statistics.local_reevaluated = chosen.reevaluated;
    return {chosen.entries, most};
  }

private:
  LocalSelector selector_;
  std::int64_t selected_ = 0;
  one_rank alone_;
  selection_workspace<index_type, value_type, E> workspace_;
};

} // namespace detail

/// Common part of the algorithms that select k entries: `algorithm_base` for the values and indices of a sparse format,
/// the agreement on the selection, the selector, and a k that may change between calls.
template <class E, class Comm, class Policies, template <class> class StateOf = detail::selection_state_of>
class selecting_base : public detail::algorithm_base<E, Comm, typename Policies::format::index_type,
                                                     typename Policies::format::value_type, StateOf<Policies>> {
  using base = typename selecting_base::algorithm_base;

public:
  /// Sets the number of entries to select from the next call on, in [0, length]. Collective. An `error` on every rank
  /// if k is out of range or differs between ranks; k then stays as before. States and residuals are kept. A reused
  /// threshold is kept until it is due or leaves its band around k.
  void set_k(detail::element_count k) {
    agreement terms("set_k");
    std::int64_t const resolved = detail::resolve_k(base::length_, k, std::nullopt, terms);
    terms.fact("k", resolved).check_on(base::comm_);
    base::k_ = resolved;
  }

  /// Those of the selector and of the format, and what an algorithm adds.
  template <class Options>
  static allreduce_promises promises(Options const& how, allreduce_promises::order sums = {},
                                     bool all_contribute = false) {
    allreduce_promises all{
        .local = local_selector_type(how.local_select).promises(), .sums = sums, .all_contribute = all_contribute};
    if constexpr (!format_type::lossless) {
      all.rounding = detail::is_lossy(how.format) ? how.format.rounding() : std::string();
    }
    return all;
  }

protected:
  using format_type = typename Policies::format;
  using local_selector_type = typename Policies::local_selector;

  /// Collective: ranks agree on length, k, format and local selector, and on the facts of `more(agreement)`.
  template <class Options, class More>
  [[gnu::cold]] selecting_base(E exec, Comm comm, Options const& how, char const* scheme, More const& more)
      : base(std::move(exec), std::move(comm), how.length, scheme),
        local_selection_(local_selector_type(how.local_select)) {
    agreement terms(scheme);
    detail::check_length<typename format_type::index_type>(how.length, terms);
    base::k_ = detail::resolve_k(how.length, how.k, how.density, terms);
    terms.fact("length", how.length).fact("k", base::k_);
    if constexpr (requires { how.format; }) {
      terms.fact("format", format_type(how.format).name()); // by a copy, which g++ 12 knows to be initialised
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

  detail::local_selection<E, format_type, local_selector_type> local_selection_;
  detail::count_gathering<Comm> gather_counts_; // for the schemes whose ranks must know each other's sizes
};

} // namespace oktopk
