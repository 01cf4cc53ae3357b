// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/select/group.hpp>
#include <oktopk/select/kernel/source.hpp>
#include <oktopk/select/kernel/workspace.hpp>

#include <concepts>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>

namespace oktopk {

namespace detail {

/// The state of a selector that carries nothing from call to call.
struct no_state {
  static bool is_sound(std::int64_t) { return true; }
  static void list_facts(agreement&) {}

  /// For `save` and `load`.
  template <class State, class Visit>
  static void each_part(State&, Visit&) {}
};

} // namespace detail

/// `entries` are valid until the next selection in the same workspace, `counts` until the next use of the same group.
template <gradient_index Index, gradient_value Value, class MemorySpace>
struct selection {
  sparse_ref<Index, Value, MemorySpace> entries; ///< of this rank, with ascending and unique indices
  std::span<std::int64_t const> counts;          ///< entries of each rank of the group, in rank order
  bool reevaluated = false;                      ///< the threshold was computed in this call
  bool checked = false;                          ///< the selector has looked for entries that are not finite
  std::int64_t not_finite = -1; ///< the least index of such an entry, where it has; none where negative

  /// Entries of all ranks of the group.
  std::int64_t total() const { return std::accumulate(counts.begin(), counts.end(), std::int64_t(0)); }
};

/// All that one selection needs beside its candidates and the selector's state; only references to larger things.
template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group>
struct selection_context {
  using index_type = Index;
  using value_type = Value;
  using memory_space = typename E::memory_space;

  E const& exec;
  std::int64_t k;         ///< entries to select, at least 0
  std::int64_t iteration; ///< ascends from call to call
  Group& group;
  selection_workspace<Index, Value, E>& workspace;
};

template <class E, class Index, class Value, class Group>
selection_context(E const&, std::int64_t, std::int64_t, Group&, selection_workspace<Index, Value, E>&)
    -> selection_context<E, Index, Value, Group>;

namespace detail {

template <class S>
concept has_selector_options = std::copyable<typename S::options> && std::constructible_from<S, typename S::options> &&
                               requires(S const& selector) {
                                 { S::name() } -> std::convertible_to<std::string>;
                                 { selector.describe() } -> std::convertible_to<std::string>;
                                 { selector.problem() } -> std::convertible_to<std::string>;
                               };

template <class S>
concept bounds_its_selection = requires(S const& selector, std::int64_t number) {
  { selector.bounded() } -> std::same_as<bool>;
  { selector.capacity(number, number) } -> std::same_as<std::int64_t>;
};

template <class S>
concept carries_state =
    std::copyable<typename S::template state<float>> &&
    requires(typename S::template state<float> const& carried, std::int64_t iteration, agreement& terms) {
      { carried.is_sound(iteration) } -> std::same_as<bool>;
      { carried.list_facts(terms) } -> std::same_as<void>;
    };

template <class S, class E, class Index, class Value, class Group, class Source>
concept selects_from = requires(S const& selector, selection_context<E, Index, Value, Group> const& context,
                                Source const& source, typename S::template state<Value>& state) {
  { selector.select(context, source, state) } -> std::same_as<selection<Index, Value, typename E::memory_space>>;
};

template <class S, class E>
concept selects_on =
    selects_from<S, E, std::int32_t, float, one_rank, candidates<std::int32_t, float, typename E::memory_space>> &&
    selects_from<S, E, std::int32_t, float, one_rank, accumulation<std::int32_t, float, typename E::memory_space>>;

} // namespace detail

/// From candidates and k to an ascending selection of about k of them, or of exactly k.
///
/// One rule for all that go by magnitude: an entry is selected if `|x| >= threshold`. Where exactly k are promised,
/// ties go to the lower index. Values that are not finite have the largest magnitudes: all selectors take them first.
///
/// 1. `options` — a plain struct, from which the selector is made. `describe()` writes it down for the ranks to
///    compare; `problem()` says what is wrong with it, and nothing where nothing is.
/// 2. `name()` — tells the selector from all others; it names the type of a saved state.
/// 3. `state<Value>` — copyable, empty at first: all that a selector carries from one iteration to the next. The same
///    state and the same candidates give the same selection and the same next state.
///    `is_sound(iteration)` — true where a selector can carry it into that iteration; a damaged state is refused by
///    `restore`. `list_facts(agreement)` — lists what is the same on ranks that select together. An `each_part`, as
///    other states have it (`core/checkpoint.hpp`), makes it a state that can be saved.
/// 4. `capacity(k, n)` — the most entries that are ever selected out of n on a rank. `bounded()` — true where that is
///    less than n by some multiple of k, so that a receiver can make room before it is told the size.
/// 5. `select(context, source, state)` — collective over `context.group`. Loads the whole source, writes the selection
///    to `context.workspace`, and ends with `gather_counts` or `adopt_counts` of the group, whose counts it returns. It
///    serves every group, unless its documentation says otherwise.
template <class S>
concept selector = std::copy_constructible<S> && detail::has_selector_options<S> && detail::bounds_its_selection<S> &&
                   detail::carries_state<S> && detail::selects_on<S, Kokkos::DefaultHostExecutionSpace>;

} // namespace oktopk
