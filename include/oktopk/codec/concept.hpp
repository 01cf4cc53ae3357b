// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk {

/// How a block of dense values lies on the wire.
///
/// * `name()` — the same on all ranks that are to understand each other.
/// `lossless` — whether `decode` gives back the bits that `encode` got.
/// * `encoded_bytes(count)` — bytes of a block of so many values, known without
/// looking at them.
/// * `encode(exec, values, count, out)`, `decode(exec, in, count, values)` —
/// enqueue the two ways; blocks are aligned to 8 bytes.
/// * `decode_and_add(exec, in, count, values)` — enqueues decoding and summing
/// in one kernel.
template <class C, class Value, class E>
concept codec =
    requires(E const& exec, Value const* values, Value* sums, std::byte* out, std::byte const* in, std::int64_t count) {
      { C::name() } -> std::convertible_to<std::string>;
      { C::lossless } -> std::convertible_to<bool>;
      { C::template encoded_bytes<Value>(count) } -> std::same_as<std::int64_t>;
      { C::encode(exec, values, count, out) } -> std::same_as<void>;
      { C::decode(exec, in, count, sums) } -> std::same_as<void>;
      { C::decode_and_add(exec, in, count, sums) } -> std::same_as<void>;
    };

namespace detail {

/// A codec of values of a fixed width each: what `Element` says of one value, for all of them.
template <class Element>
struct elementwise_codec {
  template <gradient_value Value>
  static constexpr std::int64_t encoded_bytes(std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(typename Element::template wire<Value>));
  }

  template <execution_space E, gradient_value Value>
  static void encode(E const& exec, Value const* values, std::int64_t count, std::byte* out) {
    auto* const to = reinterpret_cast<typename Element::template wire<Value>*>(out);
    Kokkos::parallel_for(
        "oktopk::codec::encode", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) { to[i] = Element::to_wire(values[i]); });
  }

  template <execution_space E, gradient_value Value>
  static void decode(E const& exec, std::byte const* in, std::int64_t count, Value* values) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    Kokkos::parallel_for(
        "oktopk::codec::decode", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) { values[i] = Element::template from_wire<Value>(from[i]); });
  }

  template <execution_space E, gradient_value Value>
  static void decode_and_add(E const& exec, std::byte const* in, std::int64_t count, Value* sums) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    Kokkos::parallel_for(
        "oktopk::codec::decode_and_add", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) { sums[i] += Element::template from_wire<Value>(from[i]); });
  }
};

} // namespace detail

} // namespace oktopk
