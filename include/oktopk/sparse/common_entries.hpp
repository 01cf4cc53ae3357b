// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/core/sparse.hpp>
#include <oktopk/sparse/lower_bound.hpp>
#include <oktopk/sparse/sorted_sets.hpp>

#include <cstdint>

namespace oktopk {

/// Writes the entries whose indices are among `those`, ascending, to arrays with room for all; gives their number. Both
/// lists ascend. No communication; waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t common_entries(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries,
                            array_ref<Index const, typename E::memory_space> those, Index* indices, Value* values) {
  std::int64_t const width = detail::search_block<E>;
  std::int64_t const size = entries.size();
  auto const those_size = static_cast<std::int64_t>(those.extent(0));
  Index const* const mine = entries.indices.data();
  Value const* const my_values = entries.values.data();
  Index const* const theirs = those.data();
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::common_entries", detail::index_range<E>(exec, 0, (size + width - 1) / width),
      KOKKOS_LAMBDA(std::int64_t block, std::int64_t & position, bool final) {
        std::int64_t const end = (block + 1) * width < size ? (block + 1) * width : size;
        std::int64_t other = detail::lower_bound(theirs, those_size, static_cast<std::int64_t>(mine[block * width]));
        for (std::int64_t at = block * width; at < end; ++at) {
          while (other < those_size && theirs[other] < mine[at]) {
            other += 1;
          }
          if (other >= those_size || theirs[other] != mine[at]) {
            continue;
          }
          if (final) {
            indices[position] = mine[at];
            values[position] = my_values[at];
          }
          position += 1;
        }
      },
      count);
  return count;
}

} // namespace oktopk
