// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>

namespace oktopk {

namespace detail {

/// The further members of a group of several ranks: rows of numbers that reach all of its ranks.
template <class G>
concept gathers_rows = requires(G& group, std::span<std::int64_t const> row, std::int64_t k, std::size_t width) {
  { group.affordable_row(k) } -> std::same_as<std::int64_t>;
  { group.gather_rows(row) } -> std::same_as<std::span<std::int64_t>>;
  { group.adopt_counts(row, width) } -> std::same_as<std::span<std::int64_t const>>;
};

} // namespace detail

/// Base of every selector: what one may tell beyond what `selector` asks for. A selector that tells it hides the function
/// here, which says what it means not to.
struct selector_base {
  /// Of a selector among ranks: true if it may gather all candidates on every rank, for the bound. Without: false.
  static constexpr bool gathers_candidates() { return false; }
};

/// The ranks that select together, each from candidates of its own.
///
/// Indices ascend from rank to rank: all candidates of a rank have lower indices than those of the next. Each member
/// that takes `counts`, `count` or `row` is collective over the group.
///
/// 1. `alone` — true where the group is one rank. A constant of the type.
/// 2. `rank()` — this rank's place in the group, from 0.
/// 3. `sum(counts)` — replaces each number by its sum over the group.
/// 4. `kth_digit_bits(k, bits)` — the number of bits, at least 1, that one histogram of a search for the k-th magnitude
///    tells apart, where `bits` of them are unknown: a wide histogram reads the candidates fewer times, a narrow one
///    sends fewer words.
/// 5. `gather_counts(count)` — ends a selection: tells all ranks how many entries this rank has selected, and returns
///    the counts of all ranks, in rank order. They are valid until the next call of 5 or 8. A fault of a rank travels
///    with its count and is thrown on every rank.
///
/// A group of several ranks has moreover:
///
/// 6. `affordable_row(k)` — the number of integers that a rank can send to all others at a small part of the cost of
///    selecting k.
/// 7. `gather_rows(row)` — the rows of all ranks, in rank order. All rows have the same size; the first number of each
///    is a count that is not negative, and a fault travels in its place as in 5. The rows may be changed, and are valid
///    until the next call of 7.
/// 8. `adopt_counts(rows, width)` — ends a selection as 5 does and sends nothing: the first number of each row of
///    `width` numbers is what that rank has selected.
template <class G>
concept selection_group = requires(G& group, std::span<std::int64_t> counts, std::int64_t count) {
  { G::alone } -> std::convertible_to<bool>;
  { group.rank() } -> std::same_as<int>;
  { group.sum(counts) } -> std::same_as<void>;
  { group.kth_digit_bits(count, 31) } -> std::same_as<int>;
  { group.gather_counts(count) } -> std::same_as<std::span<std::int64_t const>>;
} && (G::alone || detail::gathers_rows<G>);

namespace detail {

/// A group that can bring all candidates to every rank, as the paper's re-evaluation does.
///
/// 9. `gather(exec, candidates)` — all candidates of all ranks in rank order, on every rank, valid until the next call.
///    Collective.
template <class G, class E, class Index, class Value>
concept gathering_group =
    selection_group<G> && requires(G& group, E const& exec, candidates<Index, Value, typename E::memory_space> from) {
      { group.gather(exec, from) } -> std::same_as<sparse_ref<Index, Value, typename E::memory_space>>;
    };

/// One rank on its own: the group of a local selection. Sends nothing.
///
/// The counts that it returns lie in the object, and are valid as long as it lives.
class one_rank {
public:
  static constexpr bool alone = true;

  int rank() const { return 0; }
  void sum(std::span<std::int64_t>) const {}

  /// A histogram must also be cleared and read, so a search among few candidates uses a narrow one.
  int kth_digit_bits(std::int64_t k, int bits) const {
    int const most = k < 4096 ? 9 : 12;
    int const digits = (bits + most - 1) / most;
    return (bits + digits - 1) / digits;
  }

  std::span<std::int64_t const> gather_counts(std::int64_t count) {
    count_ = count;
    return {&count_, 1};
  }

private:
  std::int64_t count_ = 0;
};

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
  std::int64_t not_finite = -1; ///< the least index of such an entry, if `checked`; negative if there is none

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
  detail::selection_workspace<Index, Value, E>& workspace;
};

template <class E, class Index, class Value, class Group>
selection_context(E const&, std::int64_t, std::int64_t, Group&, detail::selection_workspace<Index, Value, E>&)
    -> selection_context<E, Index, Value, Group>;

/// What a selector promises of each selection; by default nothing.
struct selection_promises {
  std::string rule{};                     ///< the selector and its options, as its `describe()` has them
  double low = 0;                         ///< fewest entries in multiples of k; fewer only where there are no more
  double high = detail::infinity<double>; ///< most entries in multiples of k
  bool largest = false; ///< no entry that is left out has a larger magnitude than one that is selected
  bool as_sent = false; ///< of sums: this holds for the values that ranks get, which a lossy format has rounded

  /// True for exactly the k largest entries, ties to the lower index.
  bool is_exact() const { return low == 1 && high == 1 && largest; }
};

namespace detail {

template <class S>
concept derives_from_selector_base = std::derived_from<S, selector_base> && requires(S const& selector) {
  { selector.gathers_candidates() } -> std::same_as<bool>;
};

template <class S>
concept has_selector_options = made_from_options<S> && requires(S const& selector) {
  { S::name() } -> std::convertible_to<std::string>;
  { selector.describe() } -> std::convertible_to<std::string>;
  { selector.problem() } -> std::convertible_to<std::string>;
};

template <class S>
concept states_promises = requires(S const& selector) {
  { selector.promises() } -> std::same_as<selection_promises>;
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

/// Makes an ascending selection of about k candidates, or of exactly k.
///
/// All selectors by magnitude have one rule: an entry is selected if `|x| >= threshold`. If exactly k are promised,
/// ties go to the lower index. Values that are not finite have the largest magnitudes: all selectors take them first.
/// The class of a selector derives from `selector_base`.
///
/// 1. `options` — a plain struct, from which the selector is made. `describe()` returns it as a text that the ranks
///    compare; `problem()` says what is wrong with it, and is empty if nothing is.
/// 2. `name()` — identifies the selector, and names the type of a saved state.
/// 3. `state<Value>` — copyable, empty at first: all that a selector carries from one iteration to the next. The same
///    state and the same candidates give the same selection and the same next state. `is_sound(iteration)` — true if a
///    selector can use the state in that iteration; `restore` refuses a damaged state. `list_facts(agreement)` — lists
///    what is the same on ranks that select together. An `each_part`, as other states have it (`core/checkpoint.hpp`),
///    makes it a state that can be saved.
/// 4. `capacity(k, n)` — the most entries that are ever selected out of n on a rank. `bounded()` — true if some
///    multiple of k bounds that, whatever n is, so that a receiver can make room before it knows the size.
/// 5. `select(context, source, state)` — collective over `context.group`. Loads the whole source, writes the selection
///    to `context.workspace`, and ends with `gather_counts` or `adopt_counts` of the group, whose counts it returns. It
///    serves every group, unless its documentation says otherwise.
/// 6. `promises()` — what holds of every selection, for programs that rely on it, tests and benchmarks.
template <class S>
concept selector = std::copy_constructible<S> && detail::derives_from_selector_base<S> &&
                   detail::has_selector_options<S> && detail::bounds_its_selection<S> && detail::states_promises<S> &&
                   detail::carries_state<S> && detail::selects_on<S, Kokkos::DefaultHostExecutionSpace>;

} // namespace oktopk
