// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/search/exact_search.hpp>

#include <cstdint>

// Searches of one rank alone for those who are no selectors.
namespace oktopk::detail {

/// The k largest of some entries, exactly, by histograms of all of them; ascending, and valid until the next use of the
/// workspace.
///
/// k must be positive.
template <execution_space E, gradient_index Index, gradient_value Value>
sparse_ref<Index, Value, typename E::memory_space>
largest_entries(E const& exec, sparse_ref<Index, Value, typename E::memory_space> entries, std::int64_t k,
                selection_workspace<Index, Value, E>& workspace) {
  one_rank alone;
  exact_search<E, Index, Value, one_rank> search({exec, k, 0, alone, workspace});
  return search.select_all(candidates<Index, Value, typename E::memory_space>(entries)).entries;
}

/// Makes room for `largest_entries`, so that the search of k among up to `most` entries allocates nothing.
template <execution_space E, gradient_index Index, gradient_value Value>
void reserve_for_largest(E const& exec, std::int64_t most, std::int64_t k,
                         selection_workspace<Index, Value, E>& workspace) {
  workspace.reserve(exec, k);
  if (workspace.numbers.device().extent(0) == 0) { // a search among none makes room for histograms
    largest_entries<E, Index, Value>(exec, {}, 1, workspace);
  }
  if constexpr (is_device<E>) {
    workspace.on_device.reserve(exec, pieces_above_threshold<warp_of<E>>(most).count());
  }
}

/// The exact k-th largest magnitude, by histograms of all candidates; see `kth_search::bracket`. k must be positive.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_magnitude(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                         selection_workspace<Index, Value, E>& workspace) {
  one_rank alone;
  kth_search<E, Index, Value, one_rank> search({exec, k, 0, alone, workspace});
  return search.kth_magnitude(from, k);
}

/// The same in little more than one read of the candidates; see `kth_search::kth_magnitude_by_prefilter`.
template <execution_space E, gradient_index Index, gradient_value Value>
kth<Value> kth_magnitude_by_prefilter(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                      std::int64_t k, selection_workspace<Index, Value, E>& workspace) {
  one_rank alone;
  kth_search<E, Index, Value, one_rank> search({exec, k, 0, alone, workspace});
  return search.kth_magnitude_by_prefilter(from);
}

} // namespace oktopk::detail
