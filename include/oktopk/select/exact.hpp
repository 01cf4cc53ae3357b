// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/compact.hpp>
#include <oktopk/select/kth_magnitude.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

namespace oktopk {

namespace detail {

/// Selects exactly min(k, candidates in the scope) entries: the k-th magnitude, then a compaction.
template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
kth<Value> select_exactly(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                          Scope& scope, selection_workspace<Index, Value, E>& workspace, selected& result) {
  result = {};
  kth<Value> found;
  if (k > 0) {
    found = kth_magnitude(exec, from, k, scope, workspace);
    keep<Value> kept{found.threshold};
    // Every rank knows whether there are more ties than wanted, so all of them go this way or none.
    std::int64_t ties = found.ties;
    if (found.ties_wanted < found.ties_total) {
      ties = std::clamp<std::int64_t>(found.ties_wanted - scope.before(found.ties), 0, found.ties);
      if (ties < found.ties) {
        kept.last_tie = ties == 0 ? -1 : position_of_tie(exec, from, found.threshold, ties, workspace);
      }
    }
    workspace.reserve(exec, std::min(k, from.size()));
    result.count = compact(exec, from, kept, workspace);
  }
  result.total = scope.share(result.count);
  result.reevaluated = true;
  return found;
}

} // namespace detail

/// Exactly k entries every time: the k largest magnitudes, ties to the lower index.
struct exact {
  struct options {};
  template <gradient_value Value>
  struct state {};

  exact() : exact(options{}) {}
  explicit exact(options) {}

  static std::string name() { return "exact"; }
  std::string describe() const { return name(); }
  std::string fault() const { return {}; }
  bool bounded() const { return true; }

  std::int64_t capacity(std::int64_t k, std::int64_t) const { return k; }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
  selected select(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k, std::int64_t,
                  state<Value>&, Scope& scope, selection_workspace<Index, Value, E>& workspace) const {
    selected result;
    detail::select_exactly(exec, from, k, scope, workspace, result);
    return result;
  }
};

} // namespace oktopk
