// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"

#include <cstdint>
#include <vector>

namespace oktopk_tests {

/// The gradient of a rank in an iteration, correlated between ranks and iterations; the same in every run.
inline std::vector<float> correlated_gradient(std::int64_t length, int rank, int ranks, int iteration) {
  std::vector<float> gradient(static_cast<std::size_t>(length));
  correlated{5, 3}({rank, ranks, iteration}, gradient);
  return gradient;
}

} // namespace oktopk_tests
