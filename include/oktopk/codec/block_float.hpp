// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/block_coder.hpp>
#include <oktopk/codec/concept.hpp>
#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace oktopk {

namespace detail {

/// The last exponent is followed by zeros up to where the codes begin, so that all bytes of a message are defined.
template <class Coder>
KOKKOS_INLINE_FUNCTION void put_exponent(std::int16_t* exponents, std::int64_t block, std::int64_t count,
                                         std::int16_t exponent) {
  exponents[block] = exponent;
  for (std::int64_t i = block + 1; i * Coder::width >= count && i % 4 != 0; ++i) {
    exponents[i] = 0;
  }
}

template <int Rate, gradient_value Value>
struct block_float_encoding {
  using coder = block_coder<Value, Rate>;

  Value const* values;
  std::int64_t count;
  std::int16_t* exponents;
  std::byte* codes;
  Value* lost;
  int rate;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    std::int64_t const begin = block * coder::width;
    typename coder::code coded[coder::width];
    if (count - begin >= coder::width) {
      put_exponent<coder>(exponents, block, count,
                          coder::encode(values + begin, coded, lost == nullptr ? nullptr : lost + begin, rate));
      coder::pack(coded, coder::width / 8, rate, codes + begin / 8 * rate);
      return;
    }
    Value whole[coder::width];
    Value left[coder::width];
    for (int i = 0; i < coder::width; ++i) {
      whole[i] = begin + i < count ? values[begin + i] : Value(0);
    }
    put_exponent<coder>(exponents, block, count, coder::encode(whole, coded, left, rate));
    coder::pack(coded, static_cast<int>(count - begin + 7) / 8, rate, codes + begin / 8 * rate);
    for (std::int64_t i = begin; i < count && lost != nullptr; ++i) {
      lost[i] = left[i - begin];
    }
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

  Operation operation;
  std::byte const* in;
  std::int64_t count;
  Value const* values;
  std::byte* out;
  Value* lost;
  std::int64_t codes; ///< where they begin
  int rate;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    auto const* const exponents = reinterpret_cast<std::int16_t const*>(in);
    auto* const new_exponents = reinterpret_cast<std::int16_t*>(out);
    std::int64_t const begin = block * coder::width;
    int const left = count - begin < coder::width ? static_cast<int>(count - begin) : coder::width;
    std::int64_t const at = codes + begin / 8 * rate;
    typename coder::code coded[coder::width];
    Value reduced[coder::width];
    Value noted[coder::width];
    coder::unpack(in + at, (left + 7) / 8, rate, coded);
    if (left == coder::width) {
      for (int i = 0; i < coder::width; ++i) {
        reduced[i] = values[begin + i];
      }
    } else {
      for (int i = 0; i < coder::width; ++i) {
        reduced[i] = i < left ? values[begin + i] : Value(0);
      }
    }
    coder::decode(operation, exponents[block], coded, left, reduced);
    bool const whole = left == coder::width;
    Value* const note = lost == nullptr ? nullptr : (whole ? lost + begin : noted);
    put_exponent<coder>(new_exponents, block, count, coder::encode(reduced, coded, note, rate));
    coder::pack(coded, (left + 7) / 8, rate, out + at);
    if (!whole && lost != nullptr) {
      for (int i = 0; i < left; ++i) {
        lost[begin + i] = noted[i];
      }
    }
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
  static constexpr bool stable = true;
  static constexpr std::int64_t grain = 64;

  struct options {
    int rate = 8; ///< bits a value, 4 to 16
  };

  block_float() : block_float(options{}) {}
  explicit block_float(options how) : options_(how) {}

  std::string name() const { return "block_float " + std::to_string(options_.rate); }

  std::string problem() const {
    return options_.rate < 4 || options_.rate > 16
               ? "rate = " + std::to_string(options_.rate) + " of block_float is not between 4 and 16"
               : std::string();
  }

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
    switch (options_.rate) {
    case 8: encode_at<8>(exec, values, count, out, lost, 8); return;
    case 16: encode_at<16>(exec, values, count, out, lost, 16); return;
    default: encode_at<0>(exec, values, count, out, lost, options_.rate); return;
    }
  }

  template <execution_space E, gradient_value Value>
  void decode(E const& exec, std::byte const* in, std::int64_t count, Value* values) const {
    decode_and_reduce(exec, detail::replace(), in, count, values);
  }

  template <execution_space E, class Operation, gradient_value Value>
  void decode_and_reduce(E const& exec, Operation operation, std::byte const* in, std::int64_t count,
                         Value* values) const {
    switch (options_.rate) {
    case 8: decode_at<8>(exec, operation, in, count, values, 8); return;
    case 16: decode_at<16>(exec, operation, in, count, values, 16); return;
    default: decode_at<0>(exec, operation, in, count, values, options_.rate); return;
    }
  }

  template <execution_space E, class Operation, gradient_value Value>
  void recode(E const& exec, Operation operation, std::byte const* in, std::int64_t count, Value const* values,
              std::byte* out, Value* lost) const {
    switch (options_.rate) {
    case 8: recode_at<8>(exec, operation, in, count, values, out, lost, 8); return;
    case 16: recode_at<16>(exec, operation, in, count, values, out, lost, 16); return;
    default: recode_at<0>(exec, operation, in, count, values, out, lost, options_.rate); return;
    }
  }

private:
  template <int Rate, execution_space E, gradient_value Value>
  static void encode_at(E const& exec, Value const* values, std::int64_t count, std::byte* out, Value* lost, int rate) {
    detail::block_float_encoding<Rate, Value> const kernel{
        values, count, reinterpret_cast<std::int16_t*>(out), out + exponent_bytes(count), lost, rate};
    Kokkos::parallel_for("oktopk::block_float::encode", detail::index_range<E>(exec, 0, blocks(count)), kernel);
  }

  template <int Rate, execution_space E, class Operation, gradient_value Value>
  static void decode_at(E const& exec, Operation operation, std::byte const* in, std::int64_t count, Value* values,
                        int rate) {
    detail::block_float_decoding<Rate, Operation, Value> const kernel{
        operation, reinterpret_cast<std::int16_t const*>(in), in + exponent_bytes(count), count, values, rate};
    Kokkos::parallel_for("oktopk::block_float::decode", detail::index_range<E>(exec, 0, blocks(count)), kernel);
  }

  template <int Rate, execution_space E, class Operation, gradient_value Value>
  static void recode_at(E const& exec, Operation operation, std::byte const* in, std::int64_t count,
                        Value const* values, std::byte* out, Value* lost, int rate) {
    detail::block_float_recoding<Rate, Operation, Value> const kernel{
        operation, in, count, values, out, lost, exponent_bytes(count), rate};
    Kokkos::parallel_for("oktopk::block_float::recode", detail::index_range<E>(exec, 0, blocks(count)), kernel);
  }

  static constexpr std::int64_t blocks(std::int64_t count) { return (count + grain - 1) / grain; }

  // The codes after them begin at a multiple of 8 bytes.
  static constexpr std::int64_t exponent_bytes(std::int64_t count) { return detail::round_up_to_8(2 * blocks(count)); }

  options options_;
};

} // namespace oktopk
