// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/kernel/source.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

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
/// 6. `affordable_row(k)` — the numbers that a rank can tell all others at a small part of the price of selecting k.
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
/// 9. `gather(exec, candidates)` — all candidates of all ranks in rank order, everywhere, until the next. Collective.
template <class G, class E, class Index, class Value>
concept gathering_group =
    selection_group<G> && requires(G& group, E const& exec, candidates<Index, Value, typename E::memory_space> from) {
      { group.gather(exec, from) } -> std::same_as<sparse_ref<Index, Value, typename E::memory_space>>;
    };

/// One rank on its own: the group of a local selection. Sends nothing.
///
/// The counts that it returns lie in the object: they are valid no longer than that.
class one_rank {
public:
  static constexpr bool alone = true;

  int rank() const { return 0; }
  void sum(std::span<std::int64_t>) const {}

  /// A histogram is cleared and read, too: that of few candidates is narrow.
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

} // namespace detail
} // namespace oktopk
