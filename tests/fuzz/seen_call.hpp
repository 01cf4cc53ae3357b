// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "fuzz/finding.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace oktopk_fuzz {

/// What is left of an accumulator: what contributed is cleared, what was returned is added.
template <class Value>
std::vector<Value> left_over(call_record<Value> const& mine, std::vector<Value> accumulator) {
  auto const inside = [&](std::int64_t i) { return i >= 0 && i < static_cast<std::int64_t>(accumulator.size()); };
  for (std::int64_t const i : mine.contributed) {
    if (inside(i)) {
      accumulator[static_cast<std::size_t>(i)] = 0;
    }
  }
  for (std::size_t i = 0; i < mine.returned.size(); ++i) {
    if (inside(mine.returned.indices[i])) {
      accumulator[static_cast<std::size_t>(mine.returned.indices[i])] += mine.returned.values[i];
    }
  }
  return accumulator;
}

/// One call on all ranks, with what went into the allreduce by our own arithmetic.
template <class Value>
struct seen_call {
  facts const& about;
  fuzz_case const& what;
  std::vector<call_record<Value>> ranks;
  std::vector<std::vector<Value>> accumulators; ///< of each rank; empty where the lengths do not fit
  std::vector<std::vector<Value>> residuals;    ///< what is left over, after a call that returned

  seen_call(facts const& some_facts, fuzz_case const& some_case, std::vector<call_record<Value>> records)
      : about(some_facts), what(some_case), ranks(std::move(records)) {
    for (auto const& mine : ranks) {
      accumulators.push_back(accumulator_of(mine));
      residuals.push_back(mine.said.code == oktopk::fault::none ? left_over(mine, accumulators.back())
                                                                : std::vector<Value>());
    }
  }

  std::int64_t length() const { return what.how.length; }

  /// The length that a rank's input should not have had; negative where it fits.
  std::int64_t wrong_length(std::size_t rank) const {
    auto const size = static_cast<std::int64_t>(ranks[rank].input.size());
    if (size != length()) {
      return size;
    }
    return what.calls_made != way::bare && ranks[rank].weights != length() ? ranks[rank].weights : -1;
  }

private:
  std::vector<Value> accumulator_of(call_record<Value> const& mine) const {
    if (what.calls_made == way::bare || mine.before.residual.size() != mine.input.size()) {
      return mine.input;
    }
    auto const rate = static_cast<Value>(mine.before.learning_rate);
    std::vector<Value> sum(mine.input.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = mine.before.residual[i] + rate * mine.input[i];
    }
    return sum;
  }
};

} // namespace oktopk_fuzz
