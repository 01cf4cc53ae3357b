// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/elementwise.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>

#include <cstdint>
#include <string>

namespace oktopk {

namespace detail {

struct bfloat16_element {
  template <gradient_value Value>
  using wire = std::uint16_t;

  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static std::uint16_t to_wire(Value value) {
    return bfloat16_bits(value);
  }

  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value from_wire(std::uint16_t half) {
    return from_bfloat16_bits<Value>(half);
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
