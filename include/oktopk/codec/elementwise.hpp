// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/concept.hpp>
#include <oktopk/core/concepts.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>

#include <cstddef>
#include <cstdint>

namespace oktopk {

namespace detail {

template <class Element, gradient_value Value>
struct element_encoding {
  Value const* values;
  typename Element::template wire<Value>* to;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { to[i] = Element::to_wire(values[i]); }
};

template <class Element, gradient_value Value>
struct noted_element_encoding {
  Value const* values;
  typename Element::template wire<Value>* to;
  Value* lost;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    auto const coded = Element::to_wire(values[i]);
    to[i] = coded;
    lost[i] = values[i] - Element::template from_wire<Value>(coded);
  }
};

template <class Element, gradient_value Value>
struct element_decoding {
  typename Element::template wire<Value> const* from;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    values[i] = Element::template from_wire<Value>(from[i]);
  }
};

template <class Element, class Operation, gradient_value Value>
struct element_reduction {
  typename Element::template wire<Value> const* from;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    values[i] = Operation::of(values[i], Element::template from_wire<Value>(from[i]));
  }
};

template <class Element, class Operation, gradient_value Value>
struct element_recoding {
  typename Element::template wire<Value> const* from;
  Value const* values;
  typename Element::template wire<Value>* to;
  Value* lost;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    Value const value = Operation::of(values[i], Element::template from_wire<Value>(from[i]));
    auto const coded = Element::to_wire(value);
    to[i] = coded;
    if (lost != nullptr) {
      lost[i] = value - Element::template from_wire<Value>(coded);
    }
  }
};

/// A codec that codes each value by itself, at a fixed width. `Element` has the two ways of one value.
template <class Element>
struct elementwise_codec {
  static constexpr bool stable = true;
  static constexpr std::int64_t grain = 1;

  template <gradient_value Value>
  static constexpr std::int64_t encoded_bytes(std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(typename Element::template wire<Value>));
  }

  template <execution_space E, gradient_value Value>
  static void encode(E const& exec, Value const* values, std::int64_t count, std::byte* out, Value* lost) {
    auto* const to = reinterpret_cast<typename Element::template wire<Value>*>(out);
    detail::index_range<E> const range(exec, 0, count);
    if (lost == nullptr) {
      Kokkos::parallel_for("oktopk::codec::encode", range, element_encoding<Element, Value>{values, to});
    } else {
      Kokkos::parallel_for("oktopk::codec::encode_and_note", range,
                           noted_element_encoding<Element, Value>{values, to, lost});
    }
  }

  template <execution_space E, gradient_value Value>
  static void decode(E const& exec, std::byte const* in, std::int64_t count, Value* values) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    Kokkos::parallel_for("oktopk::codec::decode", detail::index_range<E>(exec, 0, count),
                         element_decoding<Element, Value>{from, values});
  }

  template <execution_space E, class Operation, gradient_value Value>
  static void decode_and_reduce(E const& exec, Operation, std::byte const* in, std::int64_t count, Value* values) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    Kokkos::parallel_for("oktopk::codec::decode_and_reduce", detail::index_range<E>(exec, 0, count),
                         element_reduction<Element, Operation, Value>{from, values});
  }

  template <execution_space E, class Operation, gradient_value Value>
  static void recode(E const& exec, Operation, std::byte const* in, std::int64_t count, Value const* values,
                     std::byte* out, Value* lost) {
    auto const* const from = reinterpret_cast<typename Element::template wire<Value> const*>(in);
    auto* const to = reinterpret_cast<typename Element::template wire<Value>*>(out);
    Kokkos::parallel_for("oktopk::codec::recode", detail::index_range<E>(exec, 0, count),
                         element_recoding<Element, Operation, Value>{from, values, to, lost});
  }
};

} // namespace detail

} // namespace oktopk
