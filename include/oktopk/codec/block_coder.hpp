// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cstdint>
#include <cstring>
#include <limits>

// One block of block floating point: numbers with one exponent together. Written so that compilers vectorise the loops
// over a block with what every processor has: no calls, no conversions that could trap, a fixed number of rounds.
namespace oktopk::detail {

/// The constants of a format that arithmetic on bit patterns needs.
template <gradient_value Value>
struct float_format {
  static constexpr int mantissa_bits = std::numeric_limits<Value>::digits - 1;
  static constexpr int largest_exponent = std::numeric_limits<Value>::max_exponent - 1;
  static constexpr int least_exponent = 1 - largest_exponent; ///< of a normal number
  static constexpr Value not_a_number = std::numeric_limits<Value>::quiet_NaN();
  /// Adding it rounds to a whole number, ties to even, and leaves that number in the low bits.
  static constexpr Value rounder = sizeof(Value) == 4 ? Value(0x1.8p23) : Value(0x1.8p52);
};

/// 2^exponent, for a normal or a subnormal one.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION Value power_of_two(int exponent) {
  using format = float_format<Value>;
  auto const one = bits_of<Value>(1);
  int const biased = exponent + format::largest_exponent;
  return __builtin_bit_cast(Value, biased > 0 ? static_cast<bits_of<Value>>(biased) << format::mantissa_bits
                                              : one << (biased + format::mantissa_bits - 1));
}

/// The operation that replaces a value by the decoded one.
struct replace {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value, Value b) {
    return b;
  }
};

/// Blocks of 64 values with `Rate` bits each, or with as many as `rate` says where `Rate` is 0.
///
/// A code is a whole number of steps, in two's complement; the step is a power of two, whose exponent is kept beside
/// the codes. Codes lie in groups of 8 values, `rate` bytes each, the first code in the lowest bits.
template <gradient_value Value, int Rate>
struct block_coder {
  static constexpr int width = 64;
  static constexpr std::int16_t not_finite = std::numeric_limits<std::int16_t>::max(); ///< instead of an exponent
  using format = float_format<Value>;
  using code = std::conditional_t<Rate == 8, std::int8_t, std::int16_t>;

  /// The exponent of the step for a block: half a step is the most that rounding takes, and no code overflows.
  KOKKOS_INLINE_FUNCTION static int step_exponent(signed_bits_of<Value> largest, int rate) {
    // What rounds up to the next power of two has that one's exponent.
    int const exponent =
        static_cast<int>((largest + (signed_bits_of<Value>(1) << (format::mantissa_bits - rate + 1))) >>
                         format::mantissa_bits) -
        format::largest_exponent;
    return (exponent < format::least_exponent ? format::least_exponent : exponent) - (rate - 2);
  }

  /// Encodes 64 values; `lost` may be null. Gives what stands for the exponent.
  KOKKOS_INLINE_FUNCTION static std::int16_t encode(Value const* values, code* codes, Value* lost, int rate) {
    rate = Rate == 0 ? rate : Rate;
    signed_bits_of<Value> largest = 0;
    for (int i = 0; i < width; ++i) {
      auto const magnitude = static_cast<signed_bits_of<Value>>(magnitude_bits(values[i]));
      largest = magnitude > largest ? magnitude : largest;
    }
    bool const finite = largest < static_cast<signed_bits_of<Value>>(infinity_bits<Value>);
    int exponent = finite ? step_exponent(largest, rate) : 0;
    int const most = format::largest_exponent - (rate - 2);
    if (exponent > most) {
      // The next power of two is infinite: the few values next to it are cut to the largest code instead.
      exponent = most;
      Value const step = power_of_two<Value>(exponent);
      Value const limit = static_cast<Value>((std::int32_t(1) << (rate - 1)) - 1) * step;
      Value cut[width];
      for (int i = 0; i < width; ++i) {
        cut[i] = values[i] > limit ? limit : (values[i] < -limit ? -limit : values[i]);
      }
      quantise(cut, values, codes, lost, exponent);
    } else {
      quantise(values, values, codes, lost, exponent);
    }
    return finite ? static_cast<std::int16_t>(exponent) : not_finite;
  }

  /// Decodes the first `count` of a block into `values` by an operation.
  template <class Operation>
  KOKKOS_INLINE_FUNCTION static void decode(Operation, std::int16_t exponent, code const* codes, int count,
                                            Value* values) {
    // `not_finite` is no exponent of a number, nor is what damage makes of one.
    bool const known =
        exponent <= format::largest_exponent && exponent >= format::least_exponent - format::mantissa_bits;
    Value const step = known ? power_of_two<Value>(exponent) : format::not_a_number;
    if (count == width) {
      for (int i = 0; i < width; ++i) {
        values[i] = Operation::of(values[i], static_cast<Value>(codes[i]) * step);
      }
    } else {
      for (int i = 0; i < count; ++i) {
        values[i] = Operation::of(values[i], static_cast<Value>(codes[i]) * step);
      }
    }
  }

  /// Packs the codes of so many groups of 8.
  KOKKOS_INLINE_FUNCTION static void pack(code const* codes, int groups, int rate, std::byte* out) {
    if constexpr (Rate != 0) {
      std::memcpy(out, codes, static_cast<std::size_t>(groups) * Rate);
    } else {
      auto const mask = (std::uint32_t(1) << rate) - 1;
      for (int group = 0; group < groups; ++group) {
        std::uint64_t half[2] = {0, 0};
        for (int i = 0; i < 8; ++i) {
          half[i / 4] |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(codes[8 * group + i]) & mask)
                         << (i % 4 * rate);
        }
        int const bits = 4 * rate; // of a half
        std::uint64_t const word[2] = {bits == 64 ? half[0] : half[0] | (half[1] << bits),
                                       bits == 64 ? half[1] : half[1] >> (64 - bits)};
        for (int byte = 0; byte < rate; ++byte) {
          out[group * rate + byte] = static_cast<std::byte>(word[byte / 8] >> (byte % 8 * 8));
        }
      }
    }
  }

  KOKKOS_INLINE_FUNCTION static void unpack(std::byte const* in, int groups, int rate, code* codes) {
    if constexpr (Rate != 0) {
      std::memcpy(codes, in, static_cast<std::size_t>(groups) * Rate);
    } else {
      for (int group = 0; group < groups; ++group) {
        std::uint64_t word[2] = {0, 0};
        for (int byte = 0; byte < rate; ++byte) {
          word[byte / 8] |= static_cast<std::uint64_t>(in[group * rate + byte]) << (byte % 8 * 8);
        }
        int const bits = 4 * rate;
        std::uint64_t const half[2] = {word[0], bits == 64 ? word[1] : (word[0] >> bits) | (word[1] << (64 - bits))};
        for (int i = 0; i < 8; ++i) {
          // To the top of 32 bits and back again, which brings the sign.
          auto const top = static_cast<std::uint32_t>(half[i / 4] >> (i % 4 * rate)) << (32 - rate);
          codes[8 * group + i] = static_cast<code>(static_cast<std::int32_t>(top) >> (32 - rate));
        }
      }
    }
  }

private:
  /// Rounds `values` to steps of 2^exponent; `lost` is what `exact` has more. Codes keep the sign: what is more than
  /// `rate` bits is cut off when they are packed.
  KOKKOS_INLINE_FUNCTION static void quantise(Value const* values, Value const* exact, code* codes, Value* lost,
                                              int exponent) {
    // 2^-exponent in two factors, for it may exceed the range. The products are exact.
    int const first = -exponent < format::largest_exponent ? -exponent : format::largest_exponent;
    Value const scale = power_of_two<Value>(first);
    Value const rest = power_of_two<Value>(-exponent - first);
    Value const rounder = format::rounder;
    if (lost == nullptr) {
      for (int i = 0; i < width; ++i) {
        codes[i] = static_cast<code>(__builtin_bit_cast(bits_of<Value>, values[i] * scale * rest + rounder));
      }
      return;
    }
    Value const step = power_of_two<Value>(exponent);
    for (int i = 0; i < width; ++i) {
      Value const rounded = values[i] * scale * rest + rounder;
      codes[i] = static_cast<code>(__builtin_bit_cast(bits_of<Value>, rounded));
      lost[i] = exact[i] - (rounded - rounder) * step;
    }
  }
};

} // namespace oktopk::detail
