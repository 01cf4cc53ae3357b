// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/workspace.hpp>

#include <algorithm>
#include <cstdint>
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
