// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/values/magnitude_block.hpp>

#include <cstdint>
#include <string>

namespace oktopk {

/// Values as IEEE half precision: 10 bits of mantissa, rounded to nearest, exponents packed per block. About 12 bits a
/// value.
///
/// An error is at most 2^-11 of a value from 2^-14 to 65504, and 2^-25 below that. Values over 65504 become that one:
/// as with any lossy format, what is missing returns to the residual.
struct float16_values {
  static constexpr bool lossless = false;
  static std::string name() { return "float16"; }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return block::most_bytes(count);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    std::uint32_t codes[detail::block_values];
    for (int i = 0; i < count; ++i) {
      std::uint32_t const half = detail::float16_bits(values[i]);
      codes[i] = (half & 0x7fffU) << 1 | half >> 15;
    }
    return block::encode(codes, count, out);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Value* values) {
    return block::decode(in, end, count, [values](int i, std::uint32_t code) {
      values[i] = detail::from_float16_bits<Value>(static_cast<std::uint16_t>(code >> 1 | code << 15));
    });
  }

private:
  using block = detail::magnitude_block<15>;
};

} // namespace oktopk
