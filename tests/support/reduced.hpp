// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <algorithm>
#include <vector>

namespace oktopk_tests {

/// What an allreduce of `numbers_of(rank)` of all ranks gives, combined in rank order.
template <class Numbers>
auto reduced(int ranks, oktopk::reduction op, Numbers const& numbers_of) {
  auto all = numbers_of(0);
  using value = typename decltype(all)::value_type;
  for (int rank = 1; rank < ranks; ++rank) {
    auto const more = numbers_of(rank);
    std::transform(all.begin(), all.end(), more.begin(), all.begin(), [op](value a, value b) {
      return op == oktopk::reduction::sum   ? static_cast<value>(a + b)
             : op == oktopk::reduction::min ? std::min(a, b)
                                            : std::max(a, b);
    });
  }
  return all;
}

} // namespace oktopk_tests
