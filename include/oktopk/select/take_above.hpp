// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/compact.hpp>
#include <oktopk/select/count.hpp>

#include <algorithm>
#include <cstdint>

namespace oktopk::detail {

/// Ends a selection: of the candidates with the k-th magnitude only the first `ties` are kept.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t take_above(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                        bits_of<Value> threshold, std::int64_t ties, bool all_ties, std::int64_t k,
                        selection_workspace<Index, Value, E>& workspace) {
  keep<Value> kept{threshold};
  if (!all_ties) {
    kept.last_tie = ties == 0 ? -1 : position_of_tie(exec, from, threshold, ties, workspace);
  }
  workspace.reserve(exec, std::min(k, from.size()));
  return compact(exec, from, kept, workspace);
}

} // namespace oktopk::detail
