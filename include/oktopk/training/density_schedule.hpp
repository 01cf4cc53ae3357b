// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace oktopk {

/// Density of each iteration: a warm-up from `initial` down to `density` in stages, each the same factor sparser (Lin
/// et al., Deep Gradient Compression, ICLR 2018, section 3.3: 25 %, 6.25 %, ... in the first epochs).
///
/// A plain value, the same on all ranks. `allreduce.set_k(schedule.k(iteration, length))` where `k` has changed is one
/// small agreement; residuals and thresholds go on.
struct density_schedule {
  double density = 0.01;    ///< after the warm-up, in (0, 1]
  double initial = 1;       ///< of the first stage, in [density, 1]; 1 is dense
  std::int64_t warm_up = 0; ///< iterations of all stages together
  int stages = 4;           ///< of the warm-up, at least 1

  /// The fault of these options in words; empty where there is none.
  std::string problem() const {
    if (!(density > 0 && density <= 1)) {
      return "the density " + std::to_string(density) + " is not in (0, 1]";
    }
    if (!(initial >= density && initial <= 1)) {
      return "the initial density " + std::to_string(initial) + " is not in [density, 1]";
    }
    if (warm_up < 0 || stages < 1) {
      return "a warm-up has 0 iterations or more, in 1 stage or more";
    }
    return {};
  }

  /// Density of an iteration. Iterations count from 0; one below 0 has the density of iteration 0.
  double at(std::int64_t iteration) const {
    iteration = std::max<std::int64_t>(iteration, 0);
    if (iteration >= warm_up) {
      return density;
    }
    auto const stage = std::floor(static_cast<double>(iteration) * stages / static_cast<double>(warm_up));
    return initial * std::pow(density / initial, stage / stages);
  }

  /// Entries of an iteration for a gradient of that length: at least 1 where there is one.
  std::int64_t k(std::int64_t iteration, std::int64_t length) const {
    auto const rounded = static_cast<std::int64_t>(std::llround(at(iteration) * static_cast<double>(length)));
    return std::min(length, std::max<std::int64_t>(rounded, 1));
  }

  bool operator==(density_schedule const&) const = default;
};

} // namespace oktopk
