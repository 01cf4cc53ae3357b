// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cstdint>
#include <type_traits>

// What two ascending lists have in common, on one thread of a CPU.
namespace oktopk::detail {

/// Positions [begin, end) of an ascending list without repetitions.
template <gradient_index Index>
struct sorted_part {
  Index const* data;
  std::int64_t begin;
  std::int64_t end;

  KOKKOS_INLINE_FUNCTION std::int64_t size() const { return end - begin; }
};

/// How a common index is written: not at all, where it is only counted; by itself; or with whatever comes after it,
/// which the next one overwrites, where nobody else writes to the array.
enum class writing : std::uint8_t { none, exact, free };

template <writing How, gradient_index Index>
KOKKOS_INLINE_FUNCTION std::int64_t take_if(bool wanted, Index index, Index* out, std::int64_t count) {
  if constexpr (How == writing::free) {
    out[count] = index; // whether it is wanted cannot be predicted
  } else if constexpr (How == writing::exact) {
    if (wanted) {
      out[count] = index;
    }
  }
  return count + (wanted ? 1 : 0);
}

/// Writes what is in both parts and gives the number. Compares index by index.
template <writing How, gradient_index Index>
KOKKOS_INLINE_FUNCTION std::int64_t common_by_merging(sorted_part<Index> these, sorted_part<Index> those, Index* out) {
  std::int64_t count = 0;
  while (these.begin < these.end && those.begin < those.end) {
    Index const x = these.data[these.begin];
    Index const y = those.data[those.begin];
    count = take_if<How>(x == y, x, out, count);
    these.begin += x <= y ? 1 : 0;
    those.begin += y <= x ? 1 : 0;
  }
  return count;
}

/// The indices that one table of bits covers: 4 KiB of them.
inline constexpr std::int64_t table_reach = std::int64_t(1) << 15;

/// The same by a table of bits, moved along both lists: one marks its indices in it, the other looks them up. No
/// comparison of two indices decides what is done next, so nothing is mispredicted but the ends of a table.
template <writing How, gradient_index Index>
KOKKOS_INLINE_FUNCTION std::int64_t common_by_table(sorted_part<Index> these, sorted_part<Index> those, Index* out) {
  using place_type = std::make_unsigned_t<Index>;
  constexpr auto reach = static_cast<place_type>(table_reach);
  std::uint64_t table[table_reach / 64] = {};
  std::int64_t count = 0;
  while (these.begin < these.end && those.begin < those.end) {
    Index const first = these.data[these.begin];
    while (those.begin < those.end && those.data[those.begin] < first) {
      those.begin += 1;
    }
    std::int64_t const marked = those.begin;
    for (; those.begin < those.end; ++those.begin) {
      auto const place = static_cast<place_type>(those.data[those.begin] - first);
      if (place >= reach) {
        break;
      }
      table[place / 64] |= std::uint64_t(1) << (place % 64);
    }
    for (; these.begin < these.end; ++these.begin) {
      Index const x = these.data[these.begin];
      auto const place = static_cast<place_type>(x - first);
      if (place >= reach) {
        break;
      }
      count = take_if<How>(((table[place / 64] >> (place % 64)) & 1) != 0, x, out, count);
    }
    for (std::int64_t i = marked; i < those.begin; ++i) {
      table[static_cast<place_type>(those.data[i] - first) / 64] = 0;
    }
  }
  return count;
}

/// Whether a table serves enough indices of a part to be worth its while.
template <gradient_index Index>
KOKKOS_INLINE_FUNCTION bool is_crowded(sorted_part<Index> part) {
  constexpr std::int64_t enough = 16; // of a list in one table
  return part.size() >= enough &&
         static_cast<std::int64_t>(part.data[part.end - 1] - part.data[part.begin]) / part.size() <
             table_reach / enough;
}

/// Writes what is in both parts, in the quicker way, and gives the number.
template <writing How, gradient_index Index>
KOKKOS_INLINE_FUNCTION std::int64_t common_indices(sorted_part<Index> these, sorted_part<Index> those, Index* out) {
  return is_crowded(these) ? common_by_table<How>(these, those, out) : common_by_merging<How>(these, those, out);
}

} // namespace oktopk::detail
