// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace oktopk_tests {

/// One rank, powers of two, and numbers beside, between and far from them.
inline constexpr int rank_counts[] = {1, 2, 3, 4, 5, 7, 8, 13, 16};

/// ceil(log2 P): rounds of a collective that doubles.
constexpr int doublings(int ranks) {
  int rounds = 0;
  for (int reach = 1; reach < ranks; reach *= 2) {
    rounds += 1;
  }
  return rounds;
}

} // namespace oktopk_tests
