// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/format/values/magnitude_block.hpp>

#include <string>

namespace oktopk {

/// Values as they are: sign and mantissa bit for bit, exponents packed per block. About 25.5 bits a float of a
/// selection, never more than 32 and the header of a block.
struct exact_values {
  static constexpr bool lossless = true;
  static std::string name() { return "exact"; }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return block<Value>::most_bytes(count);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    using bits = detail::bits_of<Value>;
    bits codes[detail::block_values];
    for (int i = 0; i < count; ++i) {
      auto const pattern = __builtin_bit_cast(bits, values[i]);
      codes[i] = pattern << 1 | pattern >> (8 * sizeof(Value) - 1);
    }
    return block<Value>::encode(codes, count, out);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Value* values) {
    using bits = detail::bits_of<Value>;
    return block<Value>::decode(in, end, count, [values](int i, bits code) {
      values[i] = __builtin_bit_cast(Value, static_cast<bits>(code >> 1 | code << (8 * sizeof(Value) - 1)));
    });
  }

private:
  template <gradient_value Value>
  using block = detail::magnitude_block<detail::magnitude_bit_count<Value>>;
};

} // namespace oktopk
