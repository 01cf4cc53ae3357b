// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/core/write_in_order.hpp>

#include <algorithm>
#include <span>

namespace oktopk::detail {

/// The first position of an ascending array whose value is not below `value`; for kernels. `Sorted` is a pointer to
/// indices or a rank-1 view of them.
template <class Sorted>
KOKKOS_INLINE_FUNCTION std::int64_t lower_bound(Sorted const& sorted, std::int64_t size, std::int64_t value) {
  std::int64_t low = 0;
  std::int64_t high = size;
  while (low < high) {
    std::int64_t const middle = low + (high - low) / 2;
    bool const is_below = static_cast<std::int64_t>(sorted[middle]) < value;
    low = is_below ? middle + 1 : low;
    high = is_below ? high : middle;
  }
  return low;
}

template <gradient_index Index>
struct boundary_search {
  Index const* sorted;
  std::int64_t size;
  std::int64_t* found; ///< each a boundary before

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t r) const { found[r] = lower_bound(sorted, size, found[r]); }
};

/// For each boundary the position of the first selected index that is not below it, on the host.
template <execution_space E, gradient_index Index>
void split_positions(E const& exec, array_ref<Index const, typename E::memory_space> selected,
                     std::span<std::int64_t const> boundaries, shared_numbers<std::int64_t, E>& numbers) {
  auto const count = static_cast<std::int64_t>(boundaries.size());
  numbers.reserve(exec, count);
  std::copy(boundaries.begin(), boundaries.end(), numbers.host());
  numbers.to_device(exec, count);
  Kokkos::parallel_for(
      "oktopk::partition::split_positions", index_range<E>(exec, 0, count),
      boundary_search<Index>{selected.data(), static_cast<std::int64_t>(selected.extent(0)), numbers.device().data()});
  numbers.to_host(exec, count, "oktopk::partition::split_positions");
}

} // namespace oktopk::detail

// Set operations on ascending index lists. No communication; they wait for `exec`.
namespace oktopk::detail {

/// The way in which a common index is written: not at all, where it is only counted; by itself; or with whatever comes
/// after it, which the next one overwrites, where nobody else writes to the array.
enum class writing : std::uint8_t { none, exact, free };

/// The indices that one table of bits covers: 4 KiB of them.
inline constexpr std::int64_t table_reach = std::int64_t(1) << 15;

/// Writes what is in two ascending lists without repetitions, and gives the number; on one thread of a CPU. By a table
/// of bits, moved along both: one list marks its indices in it, the other looks them up. No comparison of two indices
/// decides what is done next, so nothing is mispredicted but the ends of a table. Where indices are far apart these are
/// many, but then the indices are few.
template <writing How, gradient_index Index>
KOKKOS_INLINE_FUNCTION std::int64_t common_indices(Index const* these, Index const* these_end, Index const* those,
                                                   Index const* those_end, Index* out) {
  using place_type = std::make_unsigned_t<Index>;
  constexpr auto reach = static_cast<place_type>(table_reach);
  std::uint64_t table[table_reach / 64] = {};
  std::int64_t count = 0;
  while (these < these_end && those < those_end) {
    Index const first = *these;
    auto const place_of = [first](Index index) { return static_cast<place_type>(index - first); };
    while (those < those_end && *those < first) {
      those += 1;
    }
    Index const* const marked = those;
    for (; those < those_end && place_of(*those) < reach; ++those) {
      table[place_of(*those) / 64] |= std::uint64_t(1) << (place_of(*those) % 64);
    }
    for (; these < these_end && place_of(*these) < reach; ++these) {
      bool const is_common = ((table[place_of(*these) / 64] >> (place_of(*these) % 64)) & 1) != 0;
      if (How == writing::free || (How == writing::exact && is_common)) {
        out[count] = *these; // without a branch where it is free, for it could not be predicted
      }
      count += is_common ? 1 : 0;
    }
    for (Index const* each = marked; each < those; ++each) {
      table[place_of(*each) / 64] = 0;
    }
  }
  return count;
}

/// On a device: those of one list that are in the other, one a lane.
template <gradient_index Index>
struct common_items {
  static constexpr bool single = true;
  static constexpr std::int64_t width = 1;

  Index const* these;
  std::int64_t these_size;
  Index const* those;
  std::int64_t those_size;
  Index* out;

  KOKKOS_INLINE_FUNCTION std::int64_t lookup(std::int64_t at) const {
    return lower_bound(those, those_size, static_cast<std::int64_t>(these[at]));
  }
  KOKKOS_INLINE_FUNCTION void narrow(std::int64_t first, std::int64_t last) {
    those_size = (last < those_size ? last + 1 : last) - first; // the last one may be common, too
    those += first;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t at) const {
    std::int64_t const other = lookup(at);
    return other < those_size && those[other] == these[at] ? 1 : 0;
  }
  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t at, std::int64_t place) const {
    out[place] = these[at];
    return 1;
  }
};

/// On a CPU: a stretch of one list and its like of the other a thread at a time.
template <execution_space E, gradient_index Index>
struct common_stretches {
  static constexpr bool single = false;
  static constexpr std::int64_t width = 2048;

  Index const* these;
  std::int64_t these_size;
  Index const* those;
  std::int64_t those_size;
  Index* out;

  template <writing How>
  KOKKOS_INLINE_FUNCTION std::int64_t common(std::int64_t stretch, Index* to) const {
    std::int64_t const begin = stretch * width;
    std::int64_t const end = begin + width < these_size ? begin + width : these_size;
    std::int64_t const other = lower_bound(those, those_size, static_cast<std::int64_t>(these[begin]));
    return common_indices<How>(these + begin, these + end, those + other, those + those_size, to);
  }
  KOKKOS_INLINE_FUNCTION std::int64_t count(std::int64_t stretch) const { return common<writing::none>(stretch, out); }
  KOKKOS_INLINE_FUNCTION std::int64_t write(std::int64_t stretch, std::int64_t place) const {
    // Where there are several threads, another's place is left alone.
    constexpr writing how = is_one_thread<E> ? writing::free : writing::exact;
    return common<how>(stretch, out + place);
  }
};

template <bool Among, execution_space E, gradient_index Index, gradient_value Value>
struct membership_selection {
  /// Neighbours that one search serves: a CPU goes on from where the last one was, on a device each has its own.
  static constexpr std::int64_t width = is_device<E> ? 1 : 256;

  sparse_ref<Index, Value, typename E::memory_space> entries;
  array_ref<Index const, typename E::memory_space> those;
  std::int64_t size;
  Index* indices;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block, std::int64_t& position, bool final) const {
    Index const* const mine = entries.indices.data();
    Index const* const theirs = those.data();
    auto const those_size = static_cast<std::int64_t>(those.extent(0));
    std::int64_t const end = (block + 1) * width < size ? (block + 1) * width : size;
    std::int64_t other = lower_bound(theirs, those_size, static_cast<std::int64_t>(mine[block * width]));
    for (std::int64_t at = block * width; at < end; ++at) {
      while (other < those_size && theirs[other] < mine[at]) {
        other += 1;
      }
      if ((other < those_size && theirs[other] == mine[at]) != Among) {
        continue;
      }
      if (final) {
        indices[position] = mine[at];
        values[position] = entries.values.data()[at];
      }
      position += 1;
    }
  }
};

/// Writes the entries with indices among `those`, or not, ascending, to arrays with room for all; gives their number.
template <bool Among, execution_space E, gradient_index Index, gradient_value Value>
std::int64_t entries_by_membership(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                                   array_ref<Index const, typename E::memory_space> those, Index* indices,
                                   Value* values) {
  membership_selection<Among, E, Index, Value> const kernel{entries, those, entries.size(), indices, values};
  std::int64_t const blocks = (kernel.size + kernel.width - 1) / kernel.width;
  std::int64_t count = 0;
  Kokkos::parallel_scan(Among ? "oktopk::common_entries" : "oktopk::difference", index_range<E>(exec, 0, blocks),
                        kernel, count);
  return count;
}

template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t common_entries(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                            array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  return entries_by_membership<true, E, Index, Value>(exec, entries, those, indices, values);
}

/// Writes those of `these` that are among `those`, ascending, to `out`, which has room for all; gives their number.
/// `workspace` is used again in the next call, on a device.
template <execution_space E, gradient_index Index>
std::int64_t intersection(E const& exec, array_ref<Index const, typename E::memory_space> these,
                          array_ref<Index const, typename E::memory_space> those, Index* out,
                          detail::order_workspace<E>& workspace) {
  using items =
      std::conditional_t<detail::is_device<E>, detail::common_items<Index>, detail::common_stretches<E, Index>>;
  auto const size = static_cast<std::int64_t>(these.extent(0));
  workspace.reserve(exec, size);
  return detail::write_in_order(
             "oktopk::intersection", exec, (size + items::width - 1) / items::width,
             items{these.data(), size, those.data(), static_cast<std::int64_t>(those.extent(0)), out}, workspace)
      .total;
}

/// Writes the entries whose indices are not among `those`, ascending, to arrays with room for all; gives their number.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t difference(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                        array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  return detail::entries_by_membership<false, E, Index, Value>(exec, entries, those, indices, values);
}

} // namespace oktopk::detail
