// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/values/magnitude_block.hpp>

#include <cstdint>
#include <string>

namespace oktopk {

/// Values as bfloat16: 7 bits of mantissa, rounded to nearest, exponents packed per block. About 9 to 10 bits a value.
///
/// An error is at most 2^-8 of a normal value. Values over the largest bfloat16 become that one; a binary64 value is
/// rounded to binary32 first.
struct bfloat16_values {
  static constexpr bool lossless = false;
  static std::string name() { return "bfloat16"; }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return block::most_bytes(count);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    std::uint32_t codes[detail::block_values];
    for (int i = 0; i < count; ++i) {
      std::uint32_t const half = detail::bfloat16_bits(values[i]);
      std::uint32_t const magnitude = half & 0x7fffU;
      codes[i] = (magnitude < largest ? magnitude : largest) << 1 | half >> 15;
    }
    return block::encode(codes, count, out);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Value* values) {
    return block::decode(in, end, count, [values](int i, std::uint32_t code) {
      values[i] = detail::from_bfloat16_bits<Value>(static_cast<std::uint16_t>(code >> 1 | code << 15));
    });
  }

private:
  using block = detail::magnitude_block<15>;
  static constexpr std::uint32_t largest = 0x7f7f;
};

} // namespace oktopk
