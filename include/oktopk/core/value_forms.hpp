// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <string>

// Forms of values on the wire. `bits<Value>` is the pattern of a value, of 16 bits or as many as the value has.
namespace oktopk::detail {

/// A value as it is.
struct exact_form {
  static constexpr bool lossless = true;

  template <gradient_value Value>
  using bits = bits_of<Value>;

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static bits<Value> to_bits(Value value) {
    return __builtin_bit_cast(bits<Value>, value);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static Value from_bits(bits<Value> pattern) {
    return __builtin_bit_cast(Value, pattern);
  }
};

/// The bfloat16 nearest to a value: the upper half of binary32, rounded to nearest, ties to even. Finite values beyond
/// the largest bfloat16 become infinite, as this rounding requires; a NaN stays a NaN. A binary64 value is rounded to
/// binary32 first.
struct bfloat16_form {
  static constexpr bool lossless = false;
  static constexpr int mantissa_bits = 7;
  static std::string name() { return "bfloat16"; }

  template <gradient_value>
  using bits = std::uint16_t;

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::uint16_t to_bits(Value value) {
    auto const pattern = __builtin_bit_cast(std::uint32_t, static_cast<float>(value));
    if ((pattern & 0x7fffffffU) > 0x7f800000U) {
      return static_cast<std::uint16_t>((pattern >> 16) | 0x40U);
    }
    return static_cast<std::uint16_t>((pattern + 0x7fffU + ((pattern >> 16) & 1U)) >> 16);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static Value from_bits(std::uint16_t half) {
    return static_cast<Value>(__builtin_bit_cast(float, static_cast<std::uint32_t>(half) << 16));
  }
};

/// The binary16 (IEEE 754 half) nearest to a value, ties to even, subnormal numbers included; binary64 is rounded only
/// once, too. Finite values beyond the largest, 65504, become 65504; infinity and NaN do not change. The way back is
/// exact.
struct float16_form {
  static constexpr bool lossless = false;
  static constexpr int mantissa_bits = 10;
  static std::string name() { return "float16"; }

  template <gradient_value>
  using bits = std::uint16_t;

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::uint16_t to_bits(Value value) {
    using pattern = bits_of<Value>;
    constexpr int dropped = std::numeric_limits<Value>::digits - 11; // bits of the mantissa
    constexpr pattern rebias = pattern(std::numeric_limits<Value>::max_exponent - 16)
                               << (dropped + 10); // of the exponent
    constexpr pattern least_normal = rebias + (pattern(1) << (dropped + 10));
    pattern const magnitude = magnitude_bits(value);
    auto const sign = static_cast<std::uint16_t>(sign_bit(value) ? 0x8000U : 0U);
    if (magnitude >= infinity_bits<Value>) {
      return static_cast<std::uint16_t>(sign | (magnitude > infinity_bits<Value> ? 0x7e00U : 0x7c00U));
    }
    pattern half = 0;
    if (magnitude < least_normal) { // in a sum with `aligning` the last bit counts 2^-24
      constexpr auto aligning = static_cast<Value>(std::uint64_t(1) << (dropped + 10)) * Value(0x1p-24);
      half = __builtin_bit_cast(pattern, magnitude_from_bits<Value>(magnitude) + aligning) -
             __builtin_bit_cast(pattern, aligning);
    } else {
      half = (magnitude - rebias + (pattern(1) << (dropped - 1)) - 1 + (magnitude >> dropped & 1)) >> dropped;
    }
    return static_cast<std::uint16_t>(sign | (half < 0x7bff ? half : 0x7bff));
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static Value from_bits(std::uint16_t half) {
    using pattern = bits_of<Value>;
    constexpr int dropped = std::numeric_limits<Value>::digits - 11;
    constexpr pattern rebias = pattern(std::numeric_limits<Value>::max_exponent - 16) << (dropped + 10);
    pattern const code = half & 0x7fffU;
    pattern magnitude = (code << dropped) + rebias;
    if (code >= 0x7c00U) {
      magnitude = infinity_bits<Value> | code << dropped;
    } else if (code < 0x400U) {
      magnitude = __builtin_bit_cast(pattern, static_cast<Value>(static_cast<std::int32_t>(code)) * Value(0x1p-24));
    }
    return __builtin_bit_cast(
        Value, static_cast<pattern>(magnitude | static_cast<pattern>(half >> 15) << (8 * sizeof(Value) - 1)));
  }
};

} // namespace oktopk::detail
