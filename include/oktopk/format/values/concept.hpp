// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cstddef>
#include <string>

namespace oktopk {

/// Base of every value codec: what one may tell beyond what `value_codec` asks for. A codec that tells it hides the
/// function here, which says what it means not to.
struct value_codec_base {
  /// Of a codec that is not `lossless`: whether this object may change values. Without: true.
  static constexpr bool is_lossy() { return true; }

  /// Bits that a value of a selection takes, of values with so many bytes; `bound` is the most. Without: that.
  static constexpr double expected_bits(int, double bound) { return bound; }
};

namespace detail {

/// The most values of a block.
inline constexpr int block_values = 256;

/// The most bytes by which a coded block may exceed its values.
inline constexpr int most_value_overhead = 64;

/// Bits that a value of a selection takes.
template <class Value, class Codec>
double expected_bits(Codec const& codec) {
  double const bound = 8.0 * codec.template most_bytes<Value>(block_values) / block_values;
  return codec.expected_bits(static_cast<int>(sizeof(Value)), bound);
}

template <class C>
concept derives_from_value_codec_base = std::derived_from<C, value_codec_base> && requires(C const& codec) {
  { codec.is_lossy() } -> std::same_as<bool>;
  { codec.expected_bits(4, 32.0) } -> std::same_as<double>;
};

template <class C, class Value>
concept codes_blocks_of =
    requires(C const& codec, Value const* values, int count, std::byte* out, std::byte const* in, Value* decoded) {
      { codec.template most_bytes<Value>(count) } -> std::same_as<int>;
      { codec.encode(values, count, out) } -> std::same_as<std::byte*>;
      { codec.decode(in, in, count, decoded) } -> std::same_as<std::byte const*>;
    };

} // namespace detail

/// The form of a block of values on the wire, for formats that have blocks.
///
/// An object that kernels copy. A block is coded by one thread, on the host or on a device. Its class derives from
/// `value_codec_base`.
///
/// 1. `name()` — the same on all ranks that exchange messages.
/// 2. `lossless` — true if `decode` gives back the bits that `encode` got, the sign of a zero included.
/// 3. `most_bytes<Value>(count)` — the most bytes that a block of 1 to 256 values takes. Grows with `count`; at most 64
///    more than the values themselves.
/// 4. `encode(values, count, out)` — writes a block of finite values; gives its end. May write 8 bytes behind it.
/// 5. `decode(in, end, count, values)` — reads a block from bytes that lie before `end`; gives the block's end, or null
///    if the bytes are no block. May read 8 bytes behind `end`. Writes `count` values at most, whatever the bytes are.
///    The bytes of `encode` give finite values.
template <class C>
concept value_codec =
    std::copy_constructible<C> && std::default_initializable<C> && detail::derives_from_value_codec_base<C> &&
    detail::codes_blocks_of<C, float> && detail::codes_blocks_of<C, double> && requires(C const& codec) {
      { codec.name() } -> std::convertible_to<std::string>;
      { C::lossless } -> std::convertible_to<bool>;
    };

} // namespace oktopk
