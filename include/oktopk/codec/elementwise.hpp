// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/codec/concept.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>
#include <oktopk/core/value_forms.hpp>

namespace oktopk {

namespace detail {

/// Encodes values. If `Operation` is not void, they are first reduced with the values that are decoded from `from`.
template <class Element, class Operation, gradient_value Value>
struct element_encoding {
  typename Element::template bits<Value> const* from;
  Value const* values;
  typename Element::template bits<Value>* to;
  Value* lost;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    Value value = values[i];
    if constexpr (!std::is_void_v<Operation>) {
      value = Operation::of(value, Element::template from_bits<Value>(from[i]));
    }
    auto const coded = Element::to_bits(value);
    to[i] = coded;
    if (lost != nullptr) {
      lost[i] = value - Element::template from_bits<Value>(coded);
    }
  }
};

template <class Element, class Operation, gradient_value Value>
struct element_reduction {
  typename Element::template bits<Value> const* from;
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    values[i] = Operation::of(values[i], Element::template from_bits<Value>(from[i]));
  }
};

/// The base of a codec that codes each value by itself, at a fixed width. `Element`, the codec itself, has the type of
/// a value on the wire, `bits<Value>`, and the conversions of one value, `to_bits` and `from_bits`.
template <class Element>
struct elementwise_codec : codec_base {
  static constexpr std::int64_t block_size = 1;

  template <gradient_value Value>
  static constexpr std::int64_t encoded_bytes(std::int64_t count) {
    return count * static_cast<std::int64_t>(sizeof(typename Element::template bits<Value>));
  }

  template <execution_space E, gradient_value Value>
  static void encode(E const& exec, Value const* values, std::int64_t count, std::byte* out, Value* lost) {
    encode_with<void>(lost == nullptr ? "oktopk::codec::encode" : "oktopk::codec::encode_and_note", exec, nullptr,
                      count, values, out, lost);
  }

  template <execution_space E, gradient_value Value>
  static void decode(E const& exec, std::byte const* in, std::int64_t count, Value* values) {
    reduce<replace>("oktopk::codec::decode", exec, in, count, values);
  }

  template <execution_space E, class Operation, gradient_value Value>
  static void decode_and_reduce(E const& exec, Operation, std::byte const* in, std::int64_t count, Value* values) {
    reduce<Operation>("oktopk::codec::decode_and_reduce", exec, in, count, values);
  }

  template <execution_space E, class Operation, gradient_value Value>
  static void recode(E const& exec, Operation, std::byte const* in, std::int64_t count, Value const* values,
                     std::byte* out, Value* lost) {
    encode_with<Operation>("oktopk::codec::recode", exec, in, count, values, out, lost);
  }

private:
  template <class Operation, execution_space E, gradient_value Value>
  static void encode_with(char const* label, E const& exec, std::byte const* in, std::int64_t count,
                          Value const* values, std::byte* out, Value* lost) {
    using wire = typename Element::template bits<Value>;
    element_encoding<Element, Operation, Value> const kernel{reinterpret_cast<wire const*>(in), values,
                                                             reinterpret_cast<wire*>(out), lost};
    Kokkos::parallel_for(label, index_range<E>(exec, 0, count), kernel);
  }

  template <class Operation, execution_space E, gradient_value Value>
  static void reduce(char const* label, E const& exec, std::byte const* in, std::int64_t count, Value* values) {
    using wire = typename Element::template bits<Value>;
    element_reduction<Element, Operation, Value> const kernel{reinterpret_cast<wire const*>(in), values};
    Kokkos::parallel_for(label, index_range<E>(exec, 0, count), kernel);
  }
};

} // namespace detail

/// Values as they are.
struct identity : detail::elementwise_codec<identity>, detail::exact_form {
  static std::string name() { return "identity"; }

  template <gradient_value Value>
  static double error_bound(double) {
    return 0;
  }
};

/// 16 bits a value: sign, exponent and 7 bits of the mantissa of binary32. Error at most 2^-8 of a normal value (a
/// binary64 one is rounded to binary32 first); a finite value over the largest bfloat16 becomes infinite.
struct bfloat16 : detail::elementwise_codec<bfloat16>, detail::bfloat16_form {
  template <gradient_value Value>
  static double error_bound(double largest) {
    double const normal = largest > 0x1p-126 ? largest : 0x1p-126;
    return normal * (sizeof(Value) == sizeof(float) ? 0x1p-8 : 0x1p-8 + 0x1p-23);
  }
};

/// 16 bits a value: IEEE half precision. Error at most 2^-11 of a value from 2^-14 to 65504, and 2^-25 below that; a
/// larger finite value becomes 65504: the difference is an error like any other, which returns to the residual.
struct float16 : detail::elementwise_codec<float16>, detail::float16_form {
  template <gradient_value Value>
  static double error_bound(double largest) {
    double const rounding = (largest > 0x1p-14 ? largest : 0x1p-14) * 0x1p-11;
    return largest - 65504 > rounding ? largest - 65504 : rounding;
  }
};

} // namespace oktopk
