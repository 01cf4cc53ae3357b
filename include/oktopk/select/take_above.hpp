// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/compact.hpp>
#include <oktopk/select/count.hpp>

#include <algorithm>
#include <cstdint>

namespace oktopk::detail {

/// Ends a selection: of the candidates with the k-th magnitude only the first `ties` are kept.
///
/// Gives how many entries it wrote: never more than k, whatever it is told. Where more candidates pass (the threshold
/// was too low), it keeps the first k of them.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t take_above(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                        bits_of<Value> threshold, std::int64_t ties, bool all_ties, std::int64_t k,
                        selection_workspace<Index, Value, E>& workspace) {
  keep<Value> kept{threshold};
  if (!all_ties) {
    kept.last_tie = ties == 0 ? -1 : position_of_tie(exec, from, threshold, ties, workspace);
  }
  std::int64_t const room = std::min(k, from.size());
  workspace.reserve(exec, room);
  std::int64_t const count = compact(exec, from, kept, workspace);
  if constexpr (!is_device<E>) {
    if (count > workspace.indices.capacity()) { // what several threads wrote was not joined
      compact_chunks(exec, from, kept, 1, room, workspace.indices.data(), workspace.values.data(),
                     workspace.chunk_counts.data(), false);
    }
  }
  return std::min(count, room);
}

} // namespace oktopk::detail
