// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace fashion {

/// The learning rate of an iteration (from 0): a rise over half an epoch, then a cosine down to a twentieth of the
/// peak. The same for every algorithm, so that what differs between two runs is the algorithm.
inline double learning_rate(double peak, std::int64_t iteration, std::int64_t iterations_per_epoch,
                            std::int64_t epochs) {
  double const done = static_cast<double>(iteration + 1);
  double const rise = 0.5 * static_cast<double>(iterations_per_epoch);
  double const total = static_cast<double>(iterations_per_epoch * epochs);
  if (done < rise) {
    return peak * done / rise;
  }
  double const last = 0.05;
  return peak * (last + (1 - last) * 0.5 * (1 + std::cos(std::numbers::pi * (done - rise) / (total - rise))));
}

} // namespace fashion
