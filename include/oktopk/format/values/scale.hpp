// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/packed/rows.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace oktopk::detail {

/// The largest value and the smallest normal one, for kernels too: nvcc takes no functions of the standard library
/// there.
template <gradient_value Value>
inline constexpr Value largest_finite = std::numeric_limits<Value>::max();
template <gradient_value Value>
inline constexpr Value smallest_normal = std::numeric_limits<Value>::min();

/// The scale of a block on the wire: the upper half of a value that is not negative.
template <gradient_value Value>
struct scale_half {
  using type = std::conditional_t<sizeof(Value) == 4, std::uint16_t, std::uint32_t>;

  static constexpr int bytes = sizeof(type);
  static constexpr int shift = 8 * bytes;

  /// The least scale that is not below a finite value, or the largest there is.
  KOKKOS_FORCEINLINE_FUNCTION static type at_least(Value value) {
    bits_of<Value> const bits = magnitude_bits(value);
    auto const up = static_cast<bits_of<Value>>((bits + low_bits(shift)) >> shift);
    bits_of<Value> const most = (infinity_bits<Value> >> shift) - 1;
    return static_cast<type>(up < most ? up : most);
  }

  /// The scale next to a finite value, or the largest there is.
  KOKKOS_FORCEINLINE_FUNCTION static type nearest(Value value) {
    bits_of<Value> const bits = magnitude_bits(value);
    bits_of<Value> const near = (bits + (bits_of<Value>(1) << (shift - 1))) >> shift;
    bits_of<Value> const most = (infinity_bits<Value> >> shift) - 1;
    return static_cast<type>(near < most ? near : most);
  }

  KOKKOS_FORCEINLINE_FUNCTION static Value value(type half) {
    return magnitude_from_bits<Value>(static_cast<bits_of<Value>>(half & static_cast<type>(low_bits(shift - 1)))
                                      << shift);
  }
};

/// A magnitude with the sign of a code: its lowest bit.
template <gradient_value Value>
KOKKOS_FORCEINLINE_FUNCTION Value with_sign(Value magnitude, std::uint32_t code) {
  auto const sign = static_cast<bits_of<Value>>(code & 1U) << (8 * sizeof(Value) - 1);
  return __builtin_bit_cast(Value, static_cast<bits_of<Value>>(__builtin_bit_cast(bits_of<Value>, magnitude) | sign));
}

} // namespace oktopk::detail
