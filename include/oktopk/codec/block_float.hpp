// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/concept.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/format/values/numbers.hpp>

#include <cstring>
#include <limits>

// One block of block floating point: numbers that share one exponent. Compilers can vectorise the loops over a block
// with the instructions that every processor has: no calls, no conversions that could trap, a fixed number of
// iterations.
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

/// 2^exponent, where the result is a normal or a subnormal number.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION Value power_of_two(int exponent) {
  using format = float_format<Value>;
  auto const one = bits_of<Value>(1);
  int const biased = exponent + format::largest_exponent;
  return __builtin_bit_cast(Value, biased > 0 ? static_cast<bits_of<Value>>(biased) << format::mantissa_bits
                                              : one << (biased + format::mantissa_bits - 1));
}

/// Blocks of 64 values with `Rate` bits a value; if `Rate` is 0, with `rate` bits a value.
///
/// A code is a whole number of steps, in two's complement; the step is a power of two, whose exponent is kept beside
/// the codes. Codes lie in groups of 8 values, `rate` bytes each, the first code in the lowest bits.
template <gradient_value Value, int Rate>
struct block_coder {
  static constexpr int width = 64;
  static constexpr std::int16_t not_finite = std::numeric_limits<std::int16_t>::max(); ///< instead of an exponent
  using format = float_format<Value>;
  using code = std::conditional_t<Rate == 8, std::int8_t, std::int16_t>;

  /// The exponent of the step of a block. Rounding changes a value by at most half a step, and no code overflows.
  KOKKOS_INLINE_FUNCTION static int step_exponent(signed_bits_of<Value> largest, int rate) {
    // A value that rounds up to the next power of two has the exponent of that power.
    int const exponent =
        static_cast<int>((largest + (signed_bits_of<Value>(1) << (format::mantissa_bits - rate + 1))) >>
                         format::mantissa_bits) -
        format::largest_exponent;
    return (exponent < format::least_exponent ? format::least_exponent : exponent) - (rate - 2);
  }

  /// Encodes 64 values; `lost` may be null. Returns the exponent, or `not_finite`.
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
      // The next power of two would be infinite: the few values next to it are cut to the largest code instead.
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
    // `not_finite`, and an exponent that damage has put out of range, decode to NaN.
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

  /// Packs the codes of `groups` groups of 8 values.
  KOKKOS_INLINE_FUNCTION static void pack(code const* codes, int groups, int rate, std::byte* out) {
    if constexpr (Rate != 0) {
      std::memcpy(out, codes, static_cast<std::size_t>(groups) * Rate);
    } else {
      std::uint32_t numbers[width];
      for (int i = 0; i < 8 * groups; ++i) {
        numbers[i] = static_cast<std::uint32_t>(codes[i] & static_cast<std::int32_t>(low_bits(rate)));
      }
      std::byte stream[2 * width + stream_slack];
      put_all(stream, numbers, 8 * groups, rate);
      std::memcpy(out, stream, static_cast<std::size_t>(groups) * static_cast<std::size_t>(rate));
    }
  }

  KOKKOS_INLINE_FUNCTION static void unpack(std::byte const* in, int groups, int rate, code* codes) {
    if constexpr (Rate != 0) {
      std::memcpy(codes, in, static_cast<std::size_t>(groups) * Rate);
    } else {
      std::byte stream[2 * width + stream_slack] = {};
      std::memcpy(stream, in, static_cast<std::size_t>(groups) * static_cast<std::size_t>(rate));
      for (int i = 0; i < 8 * groups; ++i) {
        // A shift to the top of 32 bits and back extends the sign.
        auto const top = static_cast<std::uint32_t>(bits_from(stream, std::int64_t(i) * rate)) << (32 - rate);
        codes[i] = static_cast<code>(static_cast<std::int32_t>(top) >> (32 - rate));
      }
    }
  }

private:
  /// Rounds `values` to steps of 2^exponent; `lost` is `exact` minus the rounded value. Codes are sign-extended;
  /// packing cuts off all bits above the lowest `rate`.
  KOKKOS_INLINE_FUNCTION static void quantise(Value const* values, Value const* exact, code* codes, Value* lost,
                                              int exponent) {
    // 2^-exponent as two factors, because it may exceed the range. The products are exact.
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

/// Encodes a block. If `Operation` is not void, its values are first reduced with the values that are decoded from
/// `in`.
template <int Rate, class Operation, gradient_value Value>
struct block_float_encoding {
  using coder = block_coder<Value, Rate>;

  std::byte const* in;
  Value const* values;
  std::int64_t count;
  std::byte* out;
  std::int64_t codes; ///< the byte at which they begin, in `in` and `out`
  Value* lost;
  int rate;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    std::int64_t const begin = block * coder::width;
    bool const whole = count - begin >= coder::width;
    int const left = whole ? coder::width : static_cast<int>(count - begin);
    std::int64_t const coded_begin = codes + begin / 8 * rate;
    typename coder::code coded[coder::width];
    Value const* from = values + begin;
    Value copied[coder::width];
    if (!whole || !std::is_void_v<Operation>) {
      for (int i = left; i < coder::width; ++i) {
        copied[i] = 0;
      }
      std::memcpy(copied, from, static_cast<std::size_t>(left) * sizeof(Value));
      if constexpr (!std::is_void_v<Operation>) {
        coder::unpack(in + coded_begin, (left + 7) / 8, rate, coded);
        coder::decode(Operation(), reinterpret_cast<std::int16_t const*>(in)[block], coded, left, copied);
      }
      from = copied;
    }
    Value noted[coder::width];
    Value* const note = lost == nullptr ? nullptr : (whole ? lost + begin : noted);
    auto* const exponents = reinterpret_cast<std::int16_t*>(out);
    exponents[block] = coder::encode(from, coded, note, rate);
    // Zeros from the last exponent to the first code, so that all bytes of a message are defined.
    for (std::int64_t i = block + 1; i * coder::width >= count && i % 4 != 0; ++i) {
      exponents[i] = 0;
    }
    coder::pack(coded, (left + 7) / 8, rate, out + coded_begin);
    if (note == noted) {
      std::memcpy(lost + begin, noted, static_cast<std::size_t>(left) * sizeof(Value));
    }
  }
};

template <int Rate, class Operation, gradient_value Value>
struct block_float_decoding {
  using coder = block_coder<Value, Rate>;

  std::byte const* in;
  std::int64_t codes; ///< where they begin
  std::int64_t count;
  Value* values;
  int rate;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    std::int64_t const begin = block * coder::width;
    int const left = count - begin < coder::width ? static_cast<int>(count - begin) : coder::width;
    typename coder::code coded[coder::width];
    coder::unpack(in + codes + begin / 8 * rate, (left + 7) / 8, rate, coded);
    coder::decode(Operation(), reinterpret_cast<std::int16_t const*>(in)[block], coded, left, values + begin);
  }
};

} // namespace oktopk::detail

namespace oktopk {

/// Block floating point at a fixed rate: 64 values share an exponent (16 bits, a quarter of a bit a value), and each
/// has `rate` bits of its own.
///
/// The step between two codes is a power of two. So decoding is exact, decoded values are encoded without a loss, and
/// the loss of a value is exactly a number of its type. The error of a value is at most half a step: 2^(1-rate) (1 +
/// 2^(1-rate)) times the largest magnitude of its block, or times the least normal number if that is larger. It is at
/// most twice that if the largest magnitude is so near to infinity that it would round to it. In a block with NaN or
/// infinity all values decode to NaN.
struct block_float : detail::fixed_rate_codec<block_float> {
  static constexpr char const* scheme = "block_float";
  using fixed_rate_codec::fixed_rate_codec;

  /// All exponents, then all codes in groups of 8 values.
  template <gradient_value>
  std::int64_t encoded_bytes(std::int64_t count) const {
    return exponent_bytes(count) + (count + 7) / 8 * options_.rate;
  }

  template <gradient_value Value>
  double error_bound(double largest) const {
    double const relative = 2.0 / static_cast<double>(std::int64_t(1) << options_.rate);
    double const least = static_cast<double>(std::numeric_limits<Value>::min());
    bool const at_the_end = largest > static_cast<double>(std::numeric_limits<Value>::max()) * (1 - 2 * relative);
    return (largest > least ? largest : least) * relative * (1 + relative) * (at_the_end ? 2 : 1);
  }

  template <execution_space E, gradient_value Value>
  void encode(E const& exec, Value const* values, std::int64_t count, std::byte* out, Value* lost) const {
    encode_with<void>("oktopk::block_float::encode", exec, nullptr, count, values, out, lost);
  }

  template <execution_space E, class Operation, gradient_value Value>
  void decode_and_reduce(E const& exec, Operation, std::byte const* in, std::int64_t count, Value* values) const {
    at_rate([&]<int Rate>(std::integral_constant<int, Rate>) {
      detail::block_float_decoding<Rate, Operation, Value> const kernel{in, exponent_bytes(count), count, values,
                                                                        options_.rate};
      Kokkos::parallel_for("oktopk::block_float::decode", detail::index_range<E>(exec, 0, blocks(count)), kernel);
    });
  }

  template <execution_space E, class Operation, gradient_value Value>
  void recode(E const& exec, Operation, std::byte const* in, std::int64_t count, Value const* values, std::byte* out,
              Value* lost) const {
    encode_with<Operation>("oktopk::block_float::recode", exec, in, count, values, out, lost);
  }

private:
  template <class Operation, execution_space E, gradient_value Value>
  void encode_with(char const* label, E const& exec, std::byte const* in, std::int64_t count, Value const* values,
                   std::byte* out, Value* lost) const {
    at_rate([&]<int Rate>(std::integral_constant<int, Rate>) {
      detail::block_float_encoding<Rate, Operation, Value> const kernel{
          in, values, count, out, exponent_bytes(count), lost, options_.rate};
      Kokkos::parallel_for(label, detail::index_range<E>(exec, 0, blocks(count)), kernel);
    });
  }

  // Calls `launch` with the rate that kernels are compiled for, or with 0 if they take the rate as an argument.
  template <class Launch>
  void at_rate(Launch const& launch) const {
    switch (options_.rate) {
    case 8: return launch(std::integral_constant<int, 8>());
    case 16: return launch(std::integral_constant<int, 16>());
    default: return launch(std::integral_constant<int, 0>());
    }
  }

  // Rounded up, so that the codes behind the exponents begin at a multiple of 8 bytes.
  static constexpr std::int64_t exponent_bytes(std::int64_t count) { return detail::round_up_to_8(2 * blocks(count)); }
};

} // namespace oktopk
