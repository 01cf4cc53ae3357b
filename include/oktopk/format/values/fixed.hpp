// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/values/numbers.hpp>

#include <limits>
#include <string>

namespace oktopk {

namespace detail {

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
  KOKKOS_FORCEINLINE_FUNCTION static type at_least(Value value) { return upper_half(value, low_bits(shift)); }

  /// The scale next to a finite value, or the largest there is.
  KOKKOS_FORCEINLINE_FUNCTION static type nearest(Value value) { return upper_half(value, low_bits(shift - 1) + 1); }

  KOKKOS_FORCEINLINE_FUNCTION static Value value(type half) {
    return magnitude_from_bits<Value>(static_cast<bits_of<Value>>(half & static_cast<type>(low_bits(shift - 1)))
                                      << shift);
  }

private:
  KOKKOS_FORCEINLINE_FUNCTION static type upper_half(Value value, std::uint64_t rounding) {
    auto const rounded = (magnitude_bits(value) + static_cast<bits_of<Value>>(rounding)) >> shift;
    bits_of<Value> const most = (infinity_bits<Value> >> shift) - 1;
    return static_cast<type>(rounded < most ? rounded : most);
  }
};

/// A magnitude with the sign of a code: its lowest bit.
template <gradient_value Value>
KOKKOS_FORCEINLINE_FUNCTION Value with_sign(Value magnitude, std::uint32_t code) {
  auto const sign = static_cast<bits_of<Value>>(code & 1U) << (8 * sizeof(Value) - 1);
  return __builtin_bit_cast(Value, static_cast<bits_of<Value>>(__builtin_bit_cast(bits_of<Value>, magnitude) | sign));
}

/// Values with one of 2^(Bits-1) magnitudes and either sign, for 1 and 2 bits. The magnitudes, fitted to the block,
/// then a code of `Bits` bits each.
template <int Bits>
struct fitted_magnitudes : value_codec_base {
  static constexpr bool lossless = false;

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return Bits * scale_half<Value>::bytes + packed_bytes<std::uint32_t>(count, Bits);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    using half = scale_half<Value>;
    Value const share = Value(1) / static_cast<Value>(count); // shares: a sum of large values overflows
    Value shares[block_values];
    std::uint32_t codes[block_values];
    Value total = 0;
    for (int i = 0; i < count; ++i) {
      shares[i] = magnitude_from_bits<Value>(magnitude_bits(values[i])) * share;
      total += shares[i];
      codes[i] = sign_bit(values[i]) ? 1U : 0U;
    }
    if (count < block_values) {
      codes[count] = 0;
    }
    if constexpr (Bits == 1) {
      store_to(out, half::nearest(total < largest_finite<Value> ? total : largest_finite<Value>));
    } else {
      Value threshold = total / static_cast<Value>(count);
      Value low = threshold;
      Value high = threshold;
      for (int round = 0; round < 4; ++round) {
        Value above = 0;
        int many = 0;
        for (int i = 0; i < count; ++i) {
          above += shares[i] > threshold ? shares[i] : 0;
          many += shares[i] > threshold ? 1 : 0;
        }
        low = many < count ? (total - above) / static_cast<Value>(count - many) : low;
        high = many > 0 ? above / static_cast<Value>(many) : high;
        threshold = low / 2 + high / 2;
      }
      for (int i = 0; i < count; ++i) {
        codes[i] |= shares[i] > threshold ? 2U : 0U;
      }
      Value const most = largest_finite<Value> / static_cast<Value>(count);
      store_to(out, half::nearest(low < most ? low * static_cast<Value>(count) : largest_finite<Value>));
      store_to(out + half::bytes,
               half::nearest(high < most ? high * static_cast<Value>(count) : largest_finite<Value>));
    }
    return pack_numbers(out + Bits * half::bytes, codes, count, Bits);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Value* values) {
    using half = scale_half<Value>;
    if (end - in < most_bytes<Value>(count)) {
      return nullptr;
    }
    Value const low = half::value(load_from<typename half::type>(in));
    Value const high = half::value(load_from<typename half::type>(in + (Bits - 1) * half::bytes));
    std::uint32_t codes[block_values];
    unpack_numbers(in + Bits * half::bytes, count, Bits, codes);
    for (int i = 0; i < count; ++i) {
      values[i] = with_sign<Value>(codes[i] >= 2 ? high : low, codes[i]);
    }
    return in + most_bytes<Value>(count);
  }
};

} // namespace detail

/// Values as multiples of a scale per block, rounded to nearest: 2^Bits - 1 levels that are symmetric around zero.
///
/// The scale is the largest magnitude of a block over the outermost level, rounded up to the upper half of its bits. An
/// error is at most half a scale: 1/254 of the largest for 8 bits, 1/14 for 4, and for `float` up to 1/128 more. As all
/// entries of a selection lie above a threshold, the innermost levels of a block are mostly unused: levels are packed
/// like exponents and mostly take less than `Bits`.
template <int Bits>
struct fixed_values : value_codec_base {
  static_assert(Bits >= 3 && Bits <= 8, "oktopk: fixed_values takes 2 to 8 bits a value");

  static constexpr bool lossless = false;
  static std::string name() { return "fixed" + std::to_string(Bits); }
  static constexpr double expected_bits(int, double) { return Bits - 0.4; }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static constexpr int most_bytes(int count) {
    return detail::scale_half<Value>::bytes + block::most_bytes(count);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    using half = detail::scale_half<Value>;
    detail::bits_of<Value> largest = 0;
    for (int i = 0; i < count; ++i) {
      detail::bits_of<Value> const bits = detail::magnitude_bits(values[i]);
      largest = bits > largest ? bits : largest;
    }
    auto const wire = half::at_least(detail::magnitude_from_bits<Value>(largest) / outermost);
    Value const scale = half::value(wire);
    // A reciprocal of a subnormal scale is not finite; such values are below any that matters, and become 0 or +-1.
    Value const reciprocal = scale >= detail::smallest_normal<Value> ? 1 / scale : 0;
    std::uint32_t codes[detail::block_values];
    for (int i = 0; i < count; ++i) {
      Value const levels =
          detail::magnitude_from_bits<Value>(detail::magnitude_bits(values[i])) * reciprocal + Value(0.5);
      auto const level = static_cast<std::uint32_t>(static_cast<std::int32_t>(levels));
      codes[i] = (level < outermost ? level : outermost) << 1 | (detail::sign_bit(values[i]) ? 1U : 0U);
    }
    detail::store_to(out, wire);
    return block::encode(codes, count, out + half::bytes);
  }

  template <gradient_value Value>
  KOKKOS_FORCEINLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                             Value* values) {
    using half = detail::scale_half<Value>;
    if (end - in < half::bytes) {
      return nullptr;
    }
    Value const scale = half::value(detail::load_from<typename half::type>(in));
    Value const most = detail::largest_finite<Value>;
    return block::decode(in + half::bytes, end, count, [values, scale, most](int i, std::uint32_t code) {
      Value const magnitude = scale * static_cast<Value>(code >> 1);
      values[i] = detail::with_sign<Value>(magnitude < most ? magnitude : most, code);
    });
  }

private:
  using block = detail::magnitude_block<Bits - 1>;
  static constexpr std::uint32_t outermost = (1U << (Bits - 1)) - 1;
};

/// Two bits a value: two magnitudes per block, fitted to it, with either sign.
///
/// The magnitudes are the means of the values below and above a threshold that lies halfway between them (Lloyd 1982),
/// found in four rounds from the mean of all.
template <>
struct fixed_values<2> : detail::fitted_magnitudes<2> {
  static std::string name() { return "fixed2"; }
};

/// One bit a value: its sign, and the mean magnitude of the block, which is the scale with the least squared error
/// (Bernstein et al. 2018, signSGD; Karimireddy et al. 2019 with error feedback).
struct sign_values : detail::fitted_magnitudes<1> {
  static std::string name() { return "sign"; }
};

} // namespace oktopk
