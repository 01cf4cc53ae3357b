// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/reduce.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk {

namespace detail {

/// The operation that replaces a value by the decoded one.
struct replace {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value, Value b) {
    return b;
  }
};

} // namespace detail

/// The form of a block of dense values on the wire: a copyable object, made from options that are the same on all
/// ranks.
///
/// 1. `name()` tells the codec and its options. `lossless` tells whether `decode` gives back the bits that `encode`
///    got.
/// 2. `block_size` is the number of values that are coded together: a vector cut at multiples of it needs no more room
///    for its parts than for the whole but for rounding, and a part is decoded alone.
/// 3. Encoding decoded values, cut at the same places, loses nothing more. A codec that does not keep this says so by a
///    constant `stable` that is false.
/// 4. `encoded_bytes<Value>(count)` is the size of a block of `count` values, known without looking at them.
/// 5. `encode(exec, values, count, out, lost)` enqueues encoding. `out` is aligned to 8 bytes. Where `lost` is not
///    null, `values` less the values that will be decoded go there.
/// 6. `decode(exec, in, count, values)` enqueues the way back. Reads `encoded_bytes(count)` bytes and writes `count`
///    values whatever the bytes are; those that no `encode` wrote give any values.
/// 7. `decode_and_reduce(exec, operation, in, count, values)` enqueues decoding and reducing into `values` in one
///    kernel; `operation` is one of core/reduce.hpp.
/// 8. `error_bound<Value>(largest)` bounds the distance of a decoded value from the encoded one. `largest` is the
///    largest magnitude of its block, or of the whole vector.
/// 9. A value that is not finite decodes to NaN or infinity, never to a finite value. It may spoil the other values of
///    its block in the same way.
///
/// See `recoding_codec` for what a codec may have beside, and tests/codec/suite.hpp for the tests that every codec
/// passes.
template <class C, class Value, class E>
concept codec =
    std::copy_constructible<C> && requires(C const& c, E const& exec, Value const* values, Value* sums, std::byte* out,
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
/// 1. `recode(exec, operation, in, count, values, out, lost)` enqueues the same as `decode_and_reduce` on a copy of
///    `values` and then `encode` of that copy, to the bit. `values` is only read; `in` and `out` do not overlap.
template <class C, class Value, class E>
concept recoding_codec = codec<C, Value, E> && !C::lossless &&
                         requires(C const& c, E const& exec, Value const* values, Value* lost, std::byte* out,
                                  std::byte const* in, std::int64_t count) {
                           { c.recode(exec, add(), in, count, values, out, lost) } -> std::same_as<void>;
                         };

} // namespace detail
} // namespace oktopk
