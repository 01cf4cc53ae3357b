// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <limits>

namespace oktopk::detail {

/// The unsigned integer as wide as `Value`.
template <wire_value Value>
using bits_of = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;

/// The signed integer as wide as `Value`.
template <wire_value Value>
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
    bits_of<Value>(2 * std::numeric_limits<Value>::max_exponent - 1) << (std::numeric_limits<Value>::digits - 1);

/// For a limit that no number reaches. With -ffast-math Clang warns of std::numeric_limits<Value>::infinity().
template <gradient_value Value>
inline constexpr Value infinity = __builtin_bit_cast(Value, infinity_bits<Value>);

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

} // namespace oktopk::detail
