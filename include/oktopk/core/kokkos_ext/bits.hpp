// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <limits>
#include <string>

namespace oktopk::detail {

/// The unsigned integer as wide as `Value`.
template <gradient_value Value>
using bits_of = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;

/// The signed integer as wide as `Value`.
template <gradient_value Value>
using signed_bits_of = std::conditional_t<sizeof(Value) == 4, std::int32_t, std::int64_t>;

/// The bit pattern of |x|: ordered like the magnitude, with infinity and then NaN above every finite value.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION constexpr bits_of<Value> magnitude_bits(Value x) {
  return __builtin_bit_cast(bits_of<Value>, x) & static_cast<bits_of<Value>>(~bits_of<Value>(0) >> 1);
}

/// True if the sign bit is set, as it is for -0 too.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION constexpr bool sign_bit(Value x) {
  return (__builtin_bit_cast(bits_of<Value>, x) >> (8 * sizeof(Value) - 1)) != 0;
}

template <gradient_value Value>
KOKKOS_INLINE_FUNCTION constexpr Value magnitude_from_bits(bits_of<Value> bits) {
  return __builtin_bit_cast(Value, bits);
}

/// The pattern of infinity: the first that is not finite.
template <gradient_value Value>
inline constexpr bits_of<Value> infinity_bits =
    __builtin_bit_cast(bits_of<Value>, std::numeric_limits<Value>::infinity());

/// True if a number is neither infinite nor NaN. By its bits: with -ffast-math, std::isfinite is true of every number,
/// and so may be a comparison with NaN.
template <gradient_value Value>
constexpr bool is_finite(Value x) {
  return magnitude_bits(x) < infinity_bits<Value>;
}

/// True if a number is not NaN.
template <gradient_value Value>
constexpr bool is_number(Value x) {
  return magnitude_bits(x) <= infinity_bits<Value>;
}

/// True if a number is finite and not negative, as thresholds are.
template <gradient_value Value>
constexpr bool is_finite_magnitude(Value x) {
  return is_finite(x) && x >= 0;
}

/// Bits in the pattern of a magnitude: the sign is not one of them.
template <gradient_value Value>
inline constexpr int magnitude_bit_count = static_cast<int>(8 * sizeof(Value)) - 1;

// Kokkos has these functions only since 4.1.
KOKKOS_INLINE_FUNCTION constexpr int popcount(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) {
    return __popcll(x);
  }
#endif
  x = x - ((x >> 1) & 0x5555555555555555U);
  x = (x & 0x3333333333333333U) + ((x >> 2) & 0x3333333333333333U);
  x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fU;
  return static_cast<int>((x * 0x0101010101010101U) >> 56);
}

KOKKOS_INLINE_FUNCTION constexpr int popcount(std::uint32_t x) {
#if defined(__CUDA_ARCH__)
  if (!__builtin_is_constant_evaluated()) {
    return __popc(x);
  }
#endif
  return popcount(static_cast<std::uint64_t>(x));
}

/// The position of the lowest set bit; x must not be zero.
KOKKOS_INLINE_FUNCTION constexpr int lowest_bit(std::uint64_t x) {
#if defined(__CUDA_ARCH__)
  return popcount((x & (~x + 1)) - 1); // two instructions less than __ffsll, and constant where x is
#else
  return __builtin_ctzll(x);
#endif
}

// Forms of values on the wire. `bits<Value>` is the pattern of a value, of 16 bits or as many as the value has.

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
