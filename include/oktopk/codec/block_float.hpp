// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/concept.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/core/options.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

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
    // A value that rounds up to the next power of two has that one's exponent.
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

namespace oktopk {

namespace detail {

/// A block that is encoded: its exponent, its codes, and what it lost.
template <int Rate, gradient_value Value>
struct block_float_writing {
  using coder = block_coder<Value, Rate>;

  std::int64_t count;
  std::byte* out;
  std::int64_t codes; ///< where they begin
  Value* lost;
  int rate;

  KOKKOS_INLINE_FUNCTION int values_of(std::int64_t block) const {
    return count - block * coder::width < coder::width ? static_cast<int>(count - block * coder::width) : coder::width;
  }

  /// `values` are 64, zeros behind the last of the vector.
  KOKKOS_INLINE_FUNCTION void put(std::int64_t block, Value const* values) const {
    std::int64_t const begin = block * coder::width;
    int const left = values_of(block);
    typename coder::code coded[coder::width];
    Value noted[coder::width];
    bool const whole = left == coder::width;
    Value* const note = lost == nullptr ? nullptr : (whole ? lost + begin : noted);
    auto* const exponents = reinterpret_cast<std::int16_t*>(out);
    exponents[block] = coder::encode(values, coded, note, rate);
    // Zeros behind the last exponent up to where the codes begin, so that all bytes of a message are defined.
    for (std::int64_t i = block + 1; i * coder::width >= count && i % 4 != 0; ++i) {
      exponents[i] = 0;
    }
    coder::pack(coded, (left + 7) / 8, rate, out + codes + begin / 8 * rate);
    if (!whole && lost != nullptr) {
      for (int i = 0; i < left; ++i) {
        lost[begin + i] = noted[i];
      }
    }
  }
};

template <int Rate, gradient_value Value>
struct block_float_encoding {
  using coder = block_coder<Value, Rate>;

  block_float_writing<Rate, Value> to;
  Value const* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    Value const* from = values + block * coder::width;
    Value last[coder::width];
    if (int const left = to.values_of(block); left < coder::width) {
      for (int i = 0; i < coder::width; ++i) {
        last[i] = i < left ? from[i] : Value(0);
      }
      from = last;
    }
    to.put(block, from);
  }
};

template <int Rate, class Operation, gradient_value Value>
struct block_float_decoding {
  using coder = block_coder<Value, Rate>;

  Operation operation;
  std::int16_t const* exponents;
  std::byte const* codes;
  std::int64_t count;
  Value* values;
  int rate;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    std::int64_t const begin = block * coder::width;
    int const left = count - begin < coder::width ? static_cast<int>(count - begin) : coder::width;
    typename coder::code coded[coder::width];
    coder::unpack(codes + begin / 8 * rate, (left + 7) / 8, rate, coded);
    coder::decode(operation, exponents[block], coded, left, values + begin);
  }
};

template <int Rate, class Operation, gradient_value Value>
struct block_float_recoding {
  using coder = block_coder<Value, Rate>;

  block_float_writing<Rate, Value> to;
  Operation operation;
  std::byte const* in;
  Value const* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    Value const* const from = values + block * coder::width;
    int const left = to.values_of(block);
    typename coder::code coded[coder::width];
    Value reduced[coder::width];
    coder::unpack(in + to.codes + block * (coder::width / 8) * to.rate, (left + 7) / 8, to.rate, coded);
    if (left == coder::width) {
      for (int i = 0; i < coder::width; ++i) {
        reduced[i] = from[i];
      }
    } else {
      for (int i = 0; i < coder::width; ++i) {
        reduced[i] = i < left ? from[i] : Value(0);
      }
    }
    coder::decode(operation, reinterpret_cast<std::int16_t const*>(in)[block], coded, left, reduced);
    to.put(block, reduced);
  }
};

} // namespace detail

/// Block floating point at a fixed rate: 64 values share an exponent (16 bits, a quarter of a bit a value), and each
/// has `rate` bits of its own.
///
/// The step between two codes is a power of two, so that decoding is exact, what was decoded is encoded to itself, and
/// what is lost is itself a number without rounding. A value is off by at most half a step, 2^(1-rate) (1 + 2^(1-rate))
/// of the largest magnitude of its block, and of the least normal number at least; by twice that where the largest
/// magnitude is so near to infinity that it would round to it. A block with NaN or infinity decodes to NaN throughout.
struct block_float {
  static constexpr bool lossless = false;
  static constexpr std::int64_t block_size = 64;

  struct options {
    int rate = 8; ///< bits a value, 4 to 16

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("rate", how.rate, "bits a value", between(4, 16));
    }
  };

  block_float() : block_float(options{}) {}
  explicit block_float(options how) : options_(how) {}

  std::string name() const { return "block_float " + std::to_string(options_.rate); }

  std::string problem() const { return detail::fault_of_options("block_float", options_); }

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
    at_rate([&]<int Rate>(std::integral_constant<int, Rate>) {
      detail::block_float_encoding<Rate, Value> const kernel{{count, out, exponent_bytes(count), lost, options_.rate},
                                                             values};
      Kokkos::parallel_for("oktopk::block_float::encode", detail::index_range<E>(exec, 0, blocks(count)), kernel);
    });
  }

  template <execution_space E, gradient_value Value>
  void decode(E const& exec, std::byte const* in, std::int64_t count, Value* values) const {
    decode_and_reduce(exec, detail::replace(), in, count, values);
  }

  template <execution_space E, class Operation, gradient_value Value>
  void decode_and_reduce(E const& exec, Operation operation, std::byte const* in, std::int64_t count,
                         Value* values) const {
    at_rate([&]<int Rate>(std::integral_constant<int, Rate>) {
      detail::block_float_decoding<Rate, Operation, Value> const kernel{
          operation,    reinterpret_cast<std::int16_t const*>(in), in + exponent_bytes(count), count, values,
          options_.rate};
      Kokkos::parallel_for("oktopk::block_float::decode", detail::index_range<E>(exec, 0, blocks(count)), kernel);
    });
  }

  template <execution_space E, class Operation, gradient_value Value>
  void recode(E const& exec, Operation operation, std::byte const* in, std::int64_t count, Value const* values,
              std::byte* out, Value* lost) const {
    at_rate([&]<int Rate>(std::integral_constant<int, Rate>) {
      detail::block_float_recoding<Rate, Operation, Value> const kernel{
          {count, out, exponent_bytes(count), lost, options_.rate}, operation, in, values};
      Kokkos::parallel_for("oktopk::block_float::recode", detail::index_range<E>(exec, 0, blocks(count)), kernel);
    });
  }

private:
  // Calls `launch` with the rate that kernels are compiled for: 0 for one that is an argument of theirs.
  template <class Launch>
  void at_rate(Launch const& launch) const {
    switch (options_.rate) {
    case 8: launch(std::integral_constant<int, 8>()); return;
    case 16: launch(std::integral_constant<int, 16>()); return;
    default: launch(std::integral_constant<int, 0>()); return;
    }
  }

  static constexpr std::int64_t blocks(std::int64_t count) { return (count + block_size - 1) / block_size; }

  // The codes after them begin at a multiple of 8 bytes.
  static constexpr std::int64_t exponent_bytes(std::int64_t count) { return detail::round_up_to_8(2 * blocks(count)); }

  options options_;
};

} // namespace oktopk
