// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/core/reduce.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace oktopk {

/// How dense values lie on the wire, each by itself: any part of a block may be coded again alone.
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

/// How blocks of dense values lie on the wire in a collective that codes them: an object, with the options it was made
/// from, the same on all ranks.
///
/// * `name()`, `lossless`, `encoded_bytes(count)` — as above; the name tells the
/// options.
/// * `encode(exec, values, count, out, lost)` — enqueues encoding; where `lost`
/// is not null, `values` less what will be decoded goes there. A block with a value that is not finite decodes to NaN
/// or infinity there, and may in other places: never to a finite value there.
/// * `decode(exec, in, count, values)` — enqueues the way back.
/// * `decode_and_reduce(exec, operation, in, count, values)` — enqueues decoding
/// and reducing (`core/reduce.hpp`) in one kernel.
/// * `recode(exec, operation, in, count, values, out, lost)`, which a lossy one may have — enqueues what
/// `decode_and_reduce` and `encode` would do after each other, in one kernel and without writing the values.
/// * `grain` — values that are coded together: parts cut at multiples of it
/// waste nothing. `stable` — whether encoding what was decoded loses nothing more.
/// * `error_bound<Value>(largest)` — how far a decoded value may be off, where
/// `largest` is the largest magnitude of its grain (of the whole vector will do).
template <class C, class Value, class E>
concept collective_codec =
    std::copy_constructible<C> && requires(C const& c, E const& exec, Value const* values, Value* sums, std::byte* out,
                                           std::byte const* in, std::int64_t count, double largest) {
      { c.name() } -> std::convertible_to<std::string>;
      { C::lossless } -> std::convertible_to<bool>;
      { C::stable } -> std::convertible_to<bool>;
      { C::grain } -> std::convertible_to<std::int64_t>;
      { c.template encoded_bytes<Value>(count) } -> std::same_as<std::int64_t>;
      { c.encode(exec, values, count, out, sums) } -> std::same_as<void>;
      { c.decode(exec, in, count, sums) } -> std::same_as<void>;
      { c.decode_and_reduce(exec, add(), in, count, sums) } -> std::same_as<void>;
      { c.template error_bound<Value>(largest) } -> std::same_as<double>;
    };

/// A codec that decodes, reduces and encodes in one kernel.
template <class C, class Value, class E>
concept recoding_codec = collective_codec<C, Value, E> && !C::lossless &&
                         requires(C const& c, E const& exec, Value const* values, Value* lost, std::byte* out,
                                  std::byte const* in, std::int64_t count) {
                           { c.recode(exec, add(), in, count, values, out, lost) } -> std::same_as<void>;
                         };

namespace detail {

/// A codec of values of a fixed width each: what `Element` says of one value, for all of them.
template <class Element>
struct elementwise_codec {
  static constexpr bool stable = true;
  static constexpr std::int64_t grain = 1;

  template <gradient_value Value>
  static constexpr std::int64_t encoded_bytes(std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(typename Element::template wire<Value>));
  }

  template <execution_space E, gradient_value Value>
  static void encode(E const& exec, Value const* values, std::int64_t count, std::byte* out) {
    auto* const to = reinterpret_cast<typename Element::template wire<Value>*>(out);
    Kokkos::parallel_for(
        "oktopk::codec::encode", detail::index_range<E>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) { to[i] = Element::to_wire(values[i]); });
  }

  template <execution_space E, gradient_value Value>
  static void encode(E const& exec, Value const* values, std::int64_t count, std::byte* out, Value* lost) {
    if (lost == nullptr) {
      encode(exec, values, count, out);
      return;
    }
    auto* const to = reinterpret_cast<typename Element::template wire<Value>*>(out);
    Kokkos::parallel_for(
        "oktopk::codec::encode_and_note", detail::index_range<E>(exec, 0, count), KOKKOS_LAMBDA(std::int64_t i) {
          auto const coded = Element::to_wire(values[i]);
          to[i] = coded;
          lost[i] = values[i] - Element::template from_wire<Value>(coded);
        });
  }

  template <execution_space E, gradient_value Value>
  static void decode(E const& exec, std::byte const* in, std::int64_t count, Value* values) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    Kokkos::parallel_for(
        "oktopk::codec::decode", detail::index_range<E>(exec, 0, count),
        KOKKOS_LAMBDA(std::int64_t i) { values[i] = Element::template from_wire<Value>(from[i]); });
  }

  template <execution_space E, gradient_value Value>
  static void decode_and_add(E const& exec, std::byte const* in, std::int64_t count, Value* sums) {
    decode_and_reduce(exec, add(), in, count, sums);
  }

  template <execution_space E, class Operation, gradient_value Value>
  static void decode_and_reduce(E const& exec, Operation, std::byte const* in, std::int64_t count, Value* values) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    Kokkos::parallel_for(
        "oktopk::codec::decode_and_reduce", detail::index_range<E>(exec, 0, count), KOKKOS_LAMBDA(std::int64_t i) {
          values[i] = Operation::of(values[i], Element::template from_wire<Value>(from[i]));
        });
  }

  template <execution_space E, class Operation, gradient_value Value>
  static void recode(E const& exec, Operation, std::byte const* in, std::int64_t count, Value const* values,
                     std::byte* out, Value* lost) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    auto* const to = reinterpret_cast<typename Element::template wire<Value>*>(out);
    Kokkos::parallel_for(
        "oktopk::codec::recode", detail::index_range<E>(exec, 0, count), KOKKOS_LAMBDA(std::int64_t i) {
          Value const value = Operation::of(values[i], Element::template from_wire<Value>(from[i]));
          auto const coded = Element::to_wire(value);
          to[i] = coded;
          if (lost != nullptr) {
            lost[i] = value - Element::template from_wire<Value>(coded);
          }
        });
  }
};

} // namespace detail

} // namespace oktopk
