// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <cstdint>

namespace oktopk::detail {

/// The bfloat16 next to a value: the upper half of binary32, rounded to nearest, ties to even. Finite values beyond the
/// largest bfloat16 become infinite, as that rounding has it; a NaN stays one. A binary64 value is rounded to binary32
/// first.
template <gradient_value Value>
KOKKOS_FORCEINLINE_FUNCTION std::uint16_t bfloat16_bits(Value value) {
  auto const bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(value));
  if ((bits & 0x7fffffffU) > 0x7f800000U) {
    return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
  }
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

template <gradient_value Value>
KOKKOS_FORCEINLINE_FUNCTION Value from_bfloat16_bits(std::uint16_t half) {
  return static_cast<Value>(__builtin_bit_cast(float, static_cast<std::uint32_t>(half) << 16));
}

} // namespace oktopk::detail
