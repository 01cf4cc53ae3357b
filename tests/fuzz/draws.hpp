// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/seeded.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace oktopk_fuzz {

/// What is drawn by chance: the same for a seed on every machine.
class draws : private oktopk_tests::seeded {
public:
  using seeded::seeded;

  std::uint64_t bits() { return next(); }
  bool chance(double p) { return uniform() < p; }

  /// In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }

  /// In [low, high).
  double real(double low, double high) { return low + (high - low) * uniform(); }

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<std::int64_t>(choices.size()))];
  }

  template <class T>
  T const& one_of(std::vector<T> const& choices) {
    return choices[static_cast<std::size_t>(below(static_cast<std::int64_t>(choices.size())))];
  }
};

/// A seed that depends on all of these.
inline std::uint64_t mixed(std::initializer_list<std::uint64_t> parts) {
  std::uint64_t seed = 0;
  for (std::uint64_t const part : parts) {
    seed = oktopk_tests::seeded(seed + part).next();
  }
  return seed;
}

} // namespace oktopk_fuzz
