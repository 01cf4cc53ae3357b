// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/write_in_order.hpp>

#include <cstdint>
#include <limits>

namespace oktopk::detail {

/// The touched places of a word of the bitmap, cleared as they are written; a device looks for what is not finite, too.
template <execution_space E, gradient_index Index, gradient_value Value>
struct touched_items {
  static constexpr bool single = false;
  static constexpr std::int64_t largest_index = std::numeric_limits<std::int64_t>::max();

  Value* sums;
  std::uint64_t* touched;
  std::int64_t begin;
  Index* indices;
  Value* values;
  std::int64_t* noted; ///< of the sums that are not finite, how far the first index is from the largest number

  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t word) const { return popcount(touched[word]); }

  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t word, std::int64_t position) const {
    std::int64_t const first = position;
    for (std::uint64_t left = touched[word]; left != 0; left &= left - 1, ++position) {
      std::int64_t const place = word * 64 + lowest_bit(left);
      Value const sum = sums[place];
      indices[position] = static_cast<Index>(begin + place);
      values[position] = sum;
      sums[place] = 0;
      if constexpr (is_device<E>) {
        if (magnitude_bits(sum) >= infinity_bits<Value>) {
          Kokkos::atomic_fetch_max(noted, largest_index - (begin + place));
        }
      }
    }
    if (position > first) { // most words are empty, and stay unwritten
      touched[word] = 0;
    }
    return position - first;
  }
};

template <execution_space E, gradient_index Index, gradient_value Value>
struct region_sum_addition {
  static constexpr std::int64_t ahead = 24;

  sparse_ref<Index, Value, typename E::memory_space> entries;
  std::int64_t last;
  std::int64_t begin;
  Value* sums;
  std::uint64_t* touched;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    // The sums are far apart and have left the cache since the last call.
    std::int64_t const later = static_cast<std::int64_t>(entries.indices(i + ahead < last ? i + ahead : last));
    prefetch_for_writing<E>(&sums[later - begin]);
    std::int64_t const place = static_cast<std::int64_t>(entries.indices(i)) - begin;
    sums[place] += entries.values(i);
    set_bits<E>(&touched[place / 64], std::uint64_t(1) << (place % 64));
  }
};

} // namespace oktopk::detail

namespace oktopk {

/// The sums of the region that a rank owns.
///
/// A dense array of the region's width and a bitmap of the places that were touched. Only touched places are ever
/// cleared, and only the bitmap (1/64 of the places) is read in full. Additions of one call go to different places, so
/// they need no atomics, and calls are in a fixed order: the sums are the same to the bit in every run.
template <gradient_index Index, gradient_value Value, execution_space E>
class region_sum {
public:
  using memory_space = typename E::memory_space;
  using entries_type = sparse_ref<Index, Value, memory_space>;

  /// Starts with an empty region, also where a call was given up and nothing extracted. All entries added until
  /// `extract` must lie inside; where no more than `most` are added, `extract` allocates nothing.
  void open(E const& exec, region where, std::int64_t most = 0) {
    if (filled_) { // cleared without memory for the entries, which may be missing
      detail::fill_array("oktopk::region_sum::clear", exec, sums_.data(), where_.width(), Value(0));
      detail::fill_array("oktopk::region_sum::clear", exec, touched_.data(), words(), std::uint64_t(0));
      filled_ = false;
    }
    where_ = where;
    sums_.reserve(exec, where.width());
    touched_.reserve(exec, words());
    workspace_.reserve(exec, words());
    counted_ = 0;
    reserve_entries(exec, most);
  }

  /// Adds entries with unique indices; waits for nothing.
  void add(E const& exec, entries_type entries) {
    counted_ += entries.size();
    filled_ = true;
    using addition = detail::region_sum_addition<E, Index, Value>;
    Kokkos::parallel_for("oktopk::region_sum::add", detail::index_range<E>(exec, 0, entries.size()),
                         addition{entries, entries.size() - 1, where_.begin, sums_.data(), touched_.data()});
  }

  /// Writes the touched places, ascending, to arrays valid until the next call, and clears them. Waits for `exec`.
  entries_type extract(E const& exec) {
    reserve_entries(exec, counted_);
    filled_ = false;
    using items = detail::touched_items<E, Index, Value>;
    auto const written = detail::write_in_order(
        "oktopk::region_sum::extract", exec, words(),
        items{sums_.data(), touched_.data(), where_.begin, indices_.data(), values_.data(), workspace_.noted()},
        workspace_);
    not_finite_ = written.noted == 0 ? -1 : items::largest_index - written.noted;
    return {indices_.data(), values_.data(), written.total};
  }

  /// True where an extraction looks for sums that are not finite, as kernels of a device do beside.
  static constexpr bool checks = detail::is_device<E>;

  /// The index of the first one of those, or -1.
  std::int64_t not_finite() const { return not_finite_; }

private:
  std::int64_t words() const { return (where_.width() + 63) / 64; }

  // Each place is an entry once, however often it was added to.
  void reserve_entries(E const& exec, std::int64_t added) {
    std::int64_t const entries = added < where_.width() ? added : where_.width();
    indices_.reserve(exec, entries);
    values_.reserve(exec, entries);
  }

  region where_;
  std::int64_t counted_ = 0;
  std::int64_t not_finite_ = -1;
  bool filled_ = false; // since the last `extract`
  // Zero between calls; growth gives fresh zeros.
  detail::buffer<Value, memory_space> sums_{"oktopk::region_sum::sums", true};
  detail::buffer<std::uint64_t, memory_space> touched_{"oktopk::region_sum::touched", true};
  detail::buffer<Index, memory_space> indices_{"oktopk::region_sum::indices"};
  detail::buffer<Value, memory_space> values_{"oktopk::region_sum::values"};
  detail::order_workspace<E> workspace_;
};

} // namespace oktopk
