// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "../ptx/types.hpp"

#include <cmath>

namespace cuda_emulator {

// What several groups of instructions do with two values. Integers wrap around.
inline constexpr auto plus = []<typename T>(T a, T b) -> T {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<u64>(a) + static_cast<u64>(b));
  } else {
    return a + b;
  }
};

// Of a number and a NaN the number; of two zeros the one with the right sign.
inline constexpr auto least = []<typename T>(T a, T b) -> T {
  if constexpr (!std::is_integral_v<T>) {
    if (a != a || b != b) {
      return a != a ? b : a;
    }
    if (a == b) {
      return std::signbit(a) ? a : b;
    }
  }
  return a < b ? a : b;
};

inline constexpr auto greatest = []<typename T>(T a, T b) -> T {
  if constexpr (!std::is_integral_v<T>) {
    if (a != a || b != b) {
      return a != a ? b : a;
    }
    if (a == b) {
      return std::signbit(a) ? b : a;
    }
  }
  return a > b ? a : b;
};

} // namespace cuda_emulator
