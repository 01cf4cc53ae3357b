// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cstdint>

namespace oktopk::detail {

/// The first position of an ascending array whose value is not below `value`; for kernels. `Sorted` is a pointer to
/// indices or a rank-1 view of them.
template <class Sorted>
KOKKOS_INLINE_FUNCTION std::int64_t lower_bound(Sorted const& sorted, std::int64_t size, std::int64_t value) {
  std::int64_t low = 0;
  std::int64_t high = size;
  while (low < high) {
    std::int64_t const middle = low + (high - low) / 2;
    if (static_cast<std::int64_t>(sorted[middle]) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

} // namespace oktopk::detail
