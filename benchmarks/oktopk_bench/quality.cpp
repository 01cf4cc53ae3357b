// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "quality.hpp"

#include "reference.hpp"

#include <cmath>
#include <limits>

namespace oktopk_bench {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

double square(double x) {
  return x * x;
}

} // namespace

update_quality quality_of(std::span<double const> sum, std::span<std::int64_t const> indices,
                          std::span<float const> values, std::int64_t k) {
  top_entries<double> of_sum(sum, k);
  top_entries<float> of_update(values, k);
  double whole = 0;
  double missing = 0;       // of S in U
  double missing_top_k = 0; // of S in Topk(S)
  double apart = 0;         // Topk(S) and Topk(U)
  std::size_t next = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    bool const updated = next < indices.size() && indices[next] == static_cast<std::int64_t>(i);
    double const value = updated ? static_cast<double>(values[next]) : 0;
    double const should_be = of_sum.takes(sum[i]) ? sum[i] : 0;
    double const is = updated && of_update.takes(values[next]) ? value : 0;
    next += updated ? 1 : 0;
    whole += square(sum[i]);
    missing += square(sum[i] - value);
    missing_top_k += square(sum[i] - should_be);
    apart += square(should_be - is);
  }
  if (whole == 0) {
    return missing == 0 ? update_quality{0, 1, 1} : update_quality{infinity, -infinity, 1};
  }
  return {std::sqrt(apart / whole), 1 - missing / whole, 1 - missing_top_k / whole};
}

} // namespace oktopk_bench
