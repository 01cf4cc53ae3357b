// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace device_cost {

/// Gradients with heavy tails, in part shared by all ranks, of which a program takes two by turns: so thresholds move a
/// little, and selections of different ranks overlap. The same in every run.
class workload {
public:
  explicit workload(std::int64_t length) : length_(length) {}

  std::vector<float> gradient(int rank, int turn) const {
    std::vector<float> values(static_cast<std::size_t>(length_));
    auto const own = static_cast<std::uint64_t>(3 * rank + turn + 1);
    for (std::int64_t i = 0; i < length_; ++i) {
      values[static_cast<std::size_t>(i)] = static_cast<float>(draw(0, i) + draw(own, i));
    }
    return values;
  }

private:
  // About a Laplace distribution, whose tail is that of gradients.
  static double draw(std::uint64_t stream, std::int64_t i) {
    std::uint64_t h = (stream << 40) + static_cast<std::uint64_t>(i) + 1;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9U;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebU;
    h = h ^ (h >> 31);
    double const even = (static_cast<double>(h >> 12) + 0.5) / 4503599627370496.0 - 0.5; // in (-1/2, 1/2)
    return (even < 0 ? 1 : -1) * std::log(1 - 2 * std::abs(even));
  }

  std::int64_t length_;
};

} // namespace device_cost
