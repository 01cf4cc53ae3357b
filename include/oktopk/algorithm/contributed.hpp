// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/sparse.hpp>

#include <cstdint>

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

/// The local selection's indices that are in the result (Algorithm 1, line 14), ascending, written to `out`, which has
/// room for all of them; gives their number. No communication. Waits for `exec`.
template <execution_space E, gradient_index Index>
std::int64_t contributed_indices(E const& exec, array_ref<Index const, typename E::memory_space> local,
                                 array_ref<Index const, typename E::memory_space> global, Index* out) {
  auto const global_size = static_cast<std::int64_t>(global.extent(0));
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::contributed",
      Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, static_cast<std::int64_t>(local.extent(0))),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        Index const index = local(i);
        if (contains(global.data(), global_size, index)) {
          if (final) {
            out[position] = index;
          }
          position += 1;
        }
      },
      count);
  return count;
}

} // namespace oktopk
