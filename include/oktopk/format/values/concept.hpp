// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cstddef>
#include <string>

namespace oktopk {

namespace detail {

/// The most values of a block.
inline constexpr int block_values = 256;

/// The most bytes by which a coded block may exceed its values.
inline constexpr int most_value_overhead = 64;

/// Bits that a value of a selection takes: the codec's `expected_bits(bytes of a value)` if it has one, else its bound.
template <class Value, class Codec>
double expected_bits(Codec const& codec) {
  if constexpr (requires { codec.expected_bits(0); }) {
    return codec.expected_bits(static_cast<int>(sizeof(Value)));
  } else {
    return 8.0 * codec.template most_bytes<Value>(block_values) / block_values;
  }
}

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
/// An object that kernels copy. A block is coded by one thread, on the host or on a device.
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
    std::copy_constructible<C> && std::default_initializable<C> && detail::codes_blocks_of<C, float> &&
    detail::codes_blocks_of<C, double> && requires(C const& codec) {
      { codec.name() } -> std::convertible_to<std::string>;
      { C::lossless } -> std::convertible_to<bool>;
    };

} // namespace oktopk
