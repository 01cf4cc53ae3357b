// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <string>

namespace oktopk_fuzz {

template <class Value>
verdict check_step(seen_call<Value> const& seen) {
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& mine = seen.ranks[rank];
    std::string const who = "rank " + std::to_string(rank) + ": ";
    if (seen.what.calls_made == way::hooked && (!mine.hooked || !same_bits(*mine.hooked, seen.accumulators[rank]))) {
      return finding{"hook", who + "the hook was not shown residual + rate x gradient"};
    }
    if (!same_bits(mine.after.residual, seen.residuals[rank])) {
      return finding{"sgd_residual", who + "the residual is not the accumulator with what contributed cleared"};
    }
    auto const ranks = static_cast<Value>(seen.ranks.size());
    std::vector<Value> weights = mine.weights_before;
    for (std::size_t i = 0; i < mine.update.size(); ++i) {
      weights[static_cast<std::size_t>(mine.update.indices[i])] -= mine.update.values[i] / ranks;
    }
    if (!same_bits(mine.weights_after, weights)) {
      return finding{"sgd_weights", who + "the weights are not the old ones less update / P"};
    }
    if (!same_bits(mine.before.learning_rate, mine.after.learning_rate)) {
      return finding{"sgd_rate", who + "a step changed the learning rate"};
    }
  }
  return {};
}

template verdict check_step(seen_call<float> const&);
template verdict check_step(seen_call<double> const&);

} // namespace oktopk_fuzz
