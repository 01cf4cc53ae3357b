// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/sparse.hpp>

#include <cstdint>

// Set operations on ascending index lists. No communication; they wait for `exec`.
namespace oktopk {

/// Whether an ascending array holds a value.
template <gradient_index Index>
KOKKOS_INLINE_FUNCTION bool contains(Index const* sorted, std::int64_t size, Index value) {
  std::int64_t low = 0;
  std::int64_t high = size;
  while (low < high) {
    std::int64_t const middle = low + (high - low) / 2;
    if (sorted[middle] < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < size && sorted[low] == value;
}

/// Writes those of `these` that are among `those`, ascending, to `out`, which has room for all; gives their number.
template <execution_space E, gradient_index Index>
std::int64_t intersection(E const& exec, array_ref<Index const, typename E::memory_space> these,
                          array_ref<Index const, typename E::memory_space> those, Index* out) {
  auto const those_size = static_cast<std::int64_t>(those.extent(0));
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::intersection",
      Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, static_cast<std::int64_t>(these.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        Index const index = these(i);
        if (contains(those.data(), those_size, index)) {
          if (final) {
            out[position] = index;
          }
          position += 1;
        }
      },
      count);
  return count;
}

/// Writes the entries whose indices are not among `those`, ascending, to arrays with room for all; gives their number.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t difference(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                        array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  auto const those_size = static_cast<std::int64_t>(those.extent(0));
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::difference", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, entries.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        Index const index = entries.indices(i);
        if (!contains(those.data(), those_size, index)) {
          if (final) {
            indices[position] = index;
            values[position] = entries.values(i);
          }
          position += 1;
        }
      },
      count);
  return count;
}

} // namespace oktopk
