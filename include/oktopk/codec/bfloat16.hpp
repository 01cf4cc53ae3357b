// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/elementwise.hpp>

#include <cstdint>
#include <string>

namespace oktopk {

namespace detail {

struct bfloat16_element {
  template <gradient_value Value>
  using wire = std::uint16_t;

  // The upper half of binary32, rounded to nearest, ties to even. Finite values beyond the largest bfloat16 become
  // infinite, as that rounding has it; a NaN stays one.
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static std::uint16_t to_wire(Value value) {
    auto const bits = __builtin_bit_cast(std::uint32_t, static_cast<float>(value));
    if ((bits & 0x7fffffffU) > 0x7f800000U) {
      return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
    }
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
  }

  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value from_wire(std::uint16_t half) {
    return static_cast<Value>(__builtin_bit_cast(float, static_cast<std::uint32_t>(half) << 16));
  }
};

} // namespace detail

/// 16 bits a value: sign, exponent and 7 bits of the mantissa of binary32. Error at most 2^-8 of a normal value (a
/// binary64 one is rounded to binary32 first); a finite value over the largest bfloat16 becomes infinite.
struct bfloat16 : detail::elementwise_codec<detail::bfloat16_element> {
  static constexpr bool lossless = false;
  static std::string name() { return "bfloat16"; }

  template <gradient_value Value>
  static double error_bound(double largest) {
    double const normal = largest > 0x1p-126 ? largest : 0x1p-126;
    return normal * (sizeof(Value) == sizeof(float) ? 0x1p-8 : 0x1p-8 + 0x1p-23);
  }
};

} // namespace oktopk
