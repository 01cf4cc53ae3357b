// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/value_forms.hpp>
#include <oktopk/format/values/numbers.hpp>

#include <string>

namespace oktopk {

namespace detail {

/// The base of values as floating-point numbers whose exponents are packed per block. `Form`, the codec itself, has one
/// of the forms of values; the highest of the bits is the sign.
template <class Form>
struct float_values : value_codec_base {
  /// Sign and mantissa, and the few bits that remain of exponents that lie close together.
  static constexpr double expected_bits(int, double) { return Form::mantissa_bits + 1 + 0.4; }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return block<Value>::most_bytes(count);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    using coder = block<Value>;
    typename coder::word codes[block_values];
    for (int i = 0; i < count; ++i) {
      codes[i] = turned<1>(Form::to_bits(values[i]));
    }
    return coder::encode(codes, count, out);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Value* values) {
    using coder = block<Value>;
    using pattern = typename Form::template bits<Value>;
    return coder::decode(in, end, count, [values](int i, typename coder::word code) {
      values[i] = Form::template from_bits<Value>(turned<coder::magnitude_bits>(static_cast<pattern>(code)));
    });
  }

private:
  template <gradient_value Value, class F = Form> // which is incomplete here
  using block = magnitude_block<8 * static_cast<int>(sizeof(typename F::template bits<Value>)) - 1>;

  // Rotates to the left, so that the sign is the lowest bit, or back.
  template <int By, class Pattern>
  KOKKOS_FORCEINLINE_FUNCTION static Pattern turned(Pattern pattern) {
    return static_cast<Pattern>(pattern << By | pattern >> (8 * static_cast<int>(sizeof(Pattern)) - By));
  }
};

} // namespace detail

/// Values as they are: sign and mantissa bit for bit, exponents packed per block. About 25.5 bits a float of a
/// selection, never more than 32 and the header of a block.
struct exact_values : detail::float_values<exact_values>, detail::exact_form {
  static std::string name() { return "exact"; }
  static constexpr double expected_bits(int value_bytes, double) { return (value_bytes == 4 ? 24 : 53) + 0.4; }
};

/// Values as bfloat16: 7 bits of mantissa, rounded to nearest, exponents packed per block. About 9 to 10 bits a value.
///
/// An error is at most 2^-8 of a normal value. Values over the largest bfloat16 become that one; a binary64 value is
/// rounded to binary32 first.
struct bfloat16_values : detail::float_values<bfloat16_values>, detail::bfloat16_form {
  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::uint16_t to_bits(Value value) {
    std::uint32_t const half = detail::bfloat16_form::to_bits(value);
    std::uint32_t const magnitude = half & 0x7fffU;
    return static_cast<std::uint16_t>((magnitude < 0x7f7fU ? magnitude : 0x7f7fU) | (half & 0x8000U));
  }
};

/// Values as IEEE half precision: 10 bits of mantissa, rounded to nearest, exponents packed per block. About 12 bits a
/// value.
///
/// An error is at most 2^-11 of a value from 2^-14 to 65504, and 2^-25 below that. Values over 65504 become that one:
/// as with any lossy format, the difference returns to the residual.
struct float16_values : detail::float_values<float16_values>, detail::float16_form {};

} // namespace oktopk
