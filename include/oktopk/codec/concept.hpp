// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/options.hpp>
#include <oktopk/core/reduce.hpp>

#include <cstddef>
#include <string>

namespace oktopk {

/// Base of every codec: what one may have beyond what `codec` asks for. A codec that has it hides the member here. With
/// `options` of its own, a plain struct that it is made from, it has `problem()`, a sentence about options that are wrong.
struct codec_base : detail::without_options {
  /// False if a block that is decoded and encoded again may lose more. Without: true.
  static constexpr bool stable = true;
};

namespace detail {

template <class C>
concept derives_from_codec_base = std::derived_from<C, codec_base> && requires(C const& codec) {
  typename C::options;
  { codec.problem() } -> std::convertible_to<std::string>;
  { C::stable } -> std::convertible_to<bool>;
};

} // namespace detail

/// The form of a block of dense values on the wire: a copyable object, made from options that are the same on all
/// ranks. Its class derives from `codec_base`.
///
/// 1. `name()` tells the codec and its options. `lossless` tells whether `decode` gives back the bits that `encode`
///    got.
/// 2. `block_size` is the number of values that are coded together. If a vector is cut at multiples of it, the encoded
///    parts need no more bytes than the encoded whole, except for rounding, and each part can be decoded alone.
/// 3. Encoding decoded values, cut at the same places, loses nothing more. A codec that does not guarantee this has a
///    constant `stable` that is false.
/// 4. `encoded_bytes<Value>(count)` is the size of a block of `count` values, known without looking at them.
/// 5. `encode(exec, values, count, out, lost)` enqueues encoding. `out` is aligned to 8 bytes. If `lost` is not null,
///    it gets `values` minus the values that will be decoded.
/// 6. `decode(exec, in, count, values)` enqueues decoding. It reads `encoded_bytes(count)` bytes and writes `count`
///    values, whatever the bytes are; bytes that no `encode` wrote give arbitrary values.
/// 7. `decode_and_reduce(exec, operation, in, count, values)` enqueues decoding and reducing into `values` in one
///    kernel; `operation` is one of core/reduce.hpp.
/// 8. `error_bound<Value>(largest)` bounds the distance of a decoded value from the encoded one. `largest` is the
///    largest magnitude of its block, or of the whole vector.
/// 9. A value that is not finite decodes to NaN or infinity, never to a finite value. It may make the other values of
///    its block NaN or infinite as well.
///
/// See `recoding_codec` for an optional function of codecs, and tests/codec/suite.hpp for the tests that every codec
/// passes.
template <class C, class Value, class E>
concept codec = std::copy_constructible<C> && detail::derives_from_codec_base<C> &&
                requires(C const& c, E const& exec, Value const* values, Value* sums, std::byte* out,
                         std::byte const* in, std::int64_t count, double largest) {
                  { c.name() } -> std::convertible_to<std::string>;
                  { C::lossless } -> std::convertible_to<bool>;
                  { C::block_size } -> std::convertible_to<std::int64_t>;
                  { c.template encoded_bytes<Value>(count) } -> std::same_as<std::int64_t>;
                  { c.encode(exec, values, count, out, sums) } -> std::same_as<void>;
                  { c.decode(exec, in, count, sums) } -> std::same_as<void>;
                  { c.decode_and_reduce(exec, detail::add(), in, count, sums) } -> std::same_as<void>;
                  { c.template error_bound<Value>(largest) } -> std::same_as<double>;
                };

namespace detail {

/// A lossy codec that decodes, reduces and encodes in one kernel.
///
/// 1. `recode(exec, operation, in, count, values, out, lost)` enqueues a kernel with the same bits as
///    `decode_and_reduce` into a copy of `values` and then `encode` of that copy. `values` is only read; `in` and `out`
///    do not overlap.
template <class C, class Value, class E>
concept recoding_codec = codec<C, Value, E> && !C::lossless &&
                         requires(C const& c, E const& exec, Value const* values, Value* lost, std::byte* out,
                                  std::byte const* in, std::int64_t count) {
                           { c.recode(exec, add(), in, count, values, out, lost) } -> std::same_as<void>;
                         };

/// The base of a codec of blocks of 64 values at a fixed rate. `Codec`, the codec itself, has a name, `scheme`.
template <class Codec>
class fixed_rate_codec : public codec_base {
public:
  static constexpr bool lossless = false;
  static constexpr std::int64_t block_size = 64;

  struct options {
    int rate = 8; ///< bits a value, 4 to 16

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("rate", how.rate, "bits a value", between(4, 16));
    }
  };

  fixed_rate_codec() : fixed_rate_codec(options{}) {}
  explicit fixed_rate_codec(options how) : options_(how) {}

  std::string name() const { return std::string(Codec::scheme) + " " + std::to_string(options_.rate); }
  std::string problem() const { return fault_of_options(Codec::scheme, options_); }

  template <execution_space E, gradient_value Value>
  void decode(E const& exec, std::byte const* in, std::int64_t count, Value* values) const {
    static_cast<Codec const&>(*this).decode_and_reduce(exec, replace(), in, count, values);
  }

protected:
  static constexpr std::int64_t blocks(std::int64_t count) { return (count + block_size - 1) / block_size; }

  options options_;
};

} // namespace detail
} // namespace oktopk
