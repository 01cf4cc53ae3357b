// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/elementwise.hpp>

#include <string>

/// The upper 16 bits of binary32, the rest cut off. Error at most 2^-7 of a normal value.
struct truncated16 : oktopk::detail::elementwise_codec<truncated16> {
  static constexpr bool lossless = false;
  static std::string name() { return "truncated16"; }

  template <oktopk::gradient_value Value>
  using bits = std::uint16_t;

  template <oktopk::gradient_value Value>
  KOKKOS_INLINE_FUNCTION static std::uint16_t to_bits(Value value) {
    auto const pattern = __builtin_bit_cast(std::uint32_t, static_cast<float>(value));
    std::uint32_t const quiet = (pattern & 0x7fffffffU) > 0x7f800000U ? 0x40U : 0U; // a NaN stays one
    return static_cast<std::uint16_t>((pattern >> 16) | quiet);
  }

  template <oktopk::gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value from_bits(std::uint16_t half) {
    return static_cast<Value>(__builtin_bit_cast(float, static_cast<std::uint32_t>(half) << 16));
  }

  template <oktopk::gradient_value Value>
  static double error_bound(double largest) {
    double const normal = largest > 0x1p-126 ? largest : 0x1p-126;
    return normal * (sizeof(Value) == sizeof(float) ? 0x1p-7 : 0x1p-7 + 0x1p-23);
  }
};
