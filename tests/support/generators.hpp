// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace oktopk_tests {

/// Reproducible noise without a state: the same number for the same arguments, on every machine (splitmix64).
inline std::uint64_t noise(std::uint64_t a, std::uint64_t b = 0, std::uint64_t c = 0, std::uint64_t d = 0) {
  std::uint64_t x = 0;
  for (std::uint64_t const part : {a, b, c, d}) {
    x += part + 0x9e3779b97f4a7c15U;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
    x ^= x >> 31;
  }
  return x;
}

/// Evenly in (0, 1).
inline double fraction(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) / 9007199254740992.0;
}

/// Evenly in [low, high].
inline std::int64_t number_in(std::int64_t low, std::int64_t high, std::uint64_t bits) {
  return low + static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(high - low + 1));
}

/// Who computes a gradient, and when.
struct moment {
  int rank = 0;
  int ranks = 1;
  int iteration = 0;
};

/// Heavy-tailed magnitude of at least 1, with a random sign.
inline double heavy_tailed(std::uint64_t bits) {
  double const magnitude = std::pow(fraction(noise(bits)), -0.4);
  return bits % 2 == 0 ? magnitude : -magnitude;
}

/// Gradients that stay much the same from one iteration to the next: nine tenths lasting, one tenth new, drifting by 2
/// % an iteration; ten times as large from iteration `jump` on. Even along the index.
struct correlated {
  std::uint64_t seed = 1;
  int jump = 1 << 30;

  template <class Value>
  void operator()(moment when, std::vector<Value>& gradient) const {
    auto const rank = static_cast<std::uint64_t>(when.rank);
    auto const iteration = static_cast<std::uint64_t>(when.iteration);
    double const scale = (1 + 0.02 * when.iteration) * (when.iteration >= jump ? 10 : 1);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double const lasting = heavy_tailed(noise(seed, rank, i));
      double const fresh = heavy_tailed(noise(seed, rank + 1000, iteration, i));
      gradient[i] = static_cast<Value>(scale * (0.9 * lasting + 0.1 * fresh));
    }
  }
};

/// Like `correlated`, rounded to whole numbers of a few thousand at most, and with more weight at low indices: all sums
/// are exact, and there are ties.
struct whole_numbers {
  std::uint64_t seed = 2;
  int jump = 1 << 30;

  template <class Value>
  void operator()(moment when, std::vector<Value>& gradient) const {
    std::vector<double> exact(gradient.size());
    correlated{seed, jump}(when, exact);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      double const weight = 1 + 20 * std::exp(-8.0 * static_cast<double>(i) / static_cast<double>(gradient.size()));
      gradient[i] = static_cast<Value>(std::fmin(std::fmax(std::round(weight * exact[i]), -4000.0), 4000.0));
    }
  }
};

} // namespace oktopk_tests
