// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/shared_numbers.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/select/source.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace oktopk {

/// What a selector chose: the first `count` entries of its selection buffers, ascending.
struct selected {
  std::int64_t count = 0;   ///< of this rank
  std::int64_t total = 0;   ///< over all ranks that select together; `count` for a local selection
  bool reevaluated = false; ///< whether the exact threshold was computed in this call
};

/// Buffers of selectors, shared by all steps of one selection: the selection itself, and a few numbers.
template <gradient_index Index, gradient_value Value, execution_space E>
struct selection_workspace {
  using memory_space = typename E::memory_space;

  buffer<Index, memory_space> indices{"oktopk::select::indices"};
  buffer<Value, memory_space> values{"oktopk::select::values"};
  buffer<Index, memory_space> other_indices{"oktopk::select::indices"};
  buffer<Value, memory_space> other_values{"oktopk::select::values"};
  buffer<Index, memory_space> chunk_indices{"oktopk::select::chunk_indices"};
  buffer<Value, memory_space> chunk_values{"oktopk::select::chunk_values"};
  buffer<std::int64_t, memory_space> chunk_counts{"oktopk::select::chunk_counts"};
  shared_numbers<std::int64_t, E> numbers{"oktopk::select::numbers"};
  buffer<std::int64_t, memory_space> histograms{"oktopk::select::histograms"};
  std::vector<std::int64_t> row;       ///< what this rank tells the others of its candidates
  std::vector<std::int64_t> undecided; ///< the patterns that all of them have told

  void reserve(E const& exec, std::int64_t entries) {
    indices.reserve(exec, entries);
    values.reserve(exec, entries);
  }

  /// Puts what was selected aside, so that a selection from it has somewhere to go.
  void put_aside() {
    std::swap(indices, other_indices);
    std::swap(values, other_values);
  }

  sparse_ref<Index, Value, memory_space> aside(std::int64_t count) const {
    return {other_indices.data(), other_values.data(), count};
  }

  sparse_ref<Index, Value, memory_space> entries(std::int64_t count) const {
    return {indices.data(), values.data(), count};
  }
};

/// Over whom a selection runs: one rank alone, or all ranks, each with the candidates of its own region.
///
/// All that name `counts`, `count` or a row are collective over the ranks that select together.
/// * `alone` — whether this is one rank by itself.
/// * `sum(counts)` — element-wise sum over these ranks, in place.
/// * `share(count)` — ends a selection: tells everybody what this rank has chosen, and gives the total.
/// * `kth_digit_bits(k, bits)` — the radix of the histograms that find the k-th of magnitudes of so many bits: a wide
///   one reads the candidates fewer times, a narrow one sends fewer words.
///
/// Several ranks, each with lower indices than the next, have moreover
/// * `rank()`;
/// * `few(k)` — how many numbers each rank can tell every other for a small part of what a selection of k costs;
/// * `gather_rows(row)` — everybody's row of numbers, the same number of them on all ranks, in the order of the ranks;
///   the first of each is a count, and a fault travels in its place as in `share`;
/// * `share_known(rows, width)` — as `share`, where the first of each row is what that rank has chosen; sends nothing.
template <class S>
concept scope_of_several =
    requires(S& scope, std::span<std::int64_t const> row, std::int64_t count, std::size_t width) {
      { scope.rank() } -> std::same_as<int>;
      { scope.few(count) } -> std::same_as<std::int64_t>;
      { scope.gather_rows(row) } -> std::same_as<std::span<std::int64_t>>;
      { scope.share_known(row, width) } -> std::same_as<std::int64_t>;
    };

template <class S>
concept selection_scope = requires(S& scope, std::span<std::int64_t> counts, std::int64_t count) {
  { scope.sum(counts) } -> std::same_as<void>;
  { scope.share(count) } -> std::same_as<std::int64_t>;
  { scope.kth_digit_bits(count, 31) } -> std::same_as<int>;
  { S::alone } -> std::convertible_to<bool>;
} && (S::alone || scope_of_several<S>);

/// One rank on its own: the scope of a local selection.
struct local_scope {
  static constexpr bool alone = true;
  void sum(std::span<std::int64_t>) const {}
  std::int64_t share(std::int64_t count) const { return count; }
  int kth_digit_bits(std::int64_t, int bits) const {
    int const digits = (bits + 11) / 12;
    return (bits + digits - 1) / digits;
  }
};

template <class S>
concept has_selector_options = std::copyable<typename S::options> && std::constructible_from<S, typename S::options> &&
                               requires(S const& selector) {
                                 { S::name() } -> std::convertible_to<std::string>;
                                 { selector.describe() } -> std::convertible_to<std::string>;
                                 { selector.fault() } -> std::convertible_to<std::string>;
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

template <class S, class E>
concept selects_on =
    requires(S const& selector, E const& exec, candidates<std::int32_t, float, typename E::memory_space> from,
             accumulation<std::int32_t, float, typename E::memory_space> making, std::int64_t k,
             typename S::template state<float>& state, std::int64_t iteration, local_scope& scope,
             selection_workspace<std::int32_t, float, E>& workspace) {
      { selector.select(exec, from, k, iteration, state, scope, workspace) } -> std::same_as<selected>;
      { selector.select(exec, making, k, iteration, state, scope, workspace) } -> std::same_as<selected>;
    };

/// From candidates and k to an ascending selection of about, or exactly, k of them.
///
/// One rule everywhere: `|x| >= threshold`; where exactly k are promised, ties go to the lower index.
/// * `options` — a plain struct; `describe()` writes it down for the ranks to compare, `fault()` says what is wrong
///   with it (empty when nothing is).
/// * `state<Value>` — copyable; all that a selector carries from one iteration to the next. `is_sound(iteration)` —
///   whether it can be what a selector carries into that iteration; a damaged one is refused by `restore`.
///   `list_facts(agreement)` — lists what must be the same on ranks that select together. It has an `each_part` as
///   other states have (`core/checkpoint.hpp`) where it is to be saved.
/// * `capacity(k, n)` — at most this many entries are ever selected out of n; `bounded()` — whether that is less than n
///   by some multiple of k, so that a receiver can make room without being told the size.
/// * `select(exec, source, k, iteration, state, scope, workspace)` — takes all of the source, puts the selection into
///   the workspace and ends with `scope.share`. Non-finite candidates have the largest magnitudes, so they are among
///   the selected when k > 0.
template <class S>
concept selector = std::copy_constructible<S> && has_selector_options<S> && bounds_its_selection<S> &&
                   carries_state<S> && selects_on<S, Kokkos::DefaultHostExecutionSpace>;

} // namespace oktopk
