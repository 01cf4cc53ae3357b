// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <cstdint>
#include <type_traits>

namespace oktopk {

template <class Input>
inline constexpr bool is_accumulation = false;

template <class Index, class Value, class MemorySpace>
inline constexpr bool is_accumulation<accumulation<Index, Value, MemorySpace>> = true;

template <class Input>
concept vector_or_accumulation = kokkos_vector<Input> || is_accumulation<Input>;

/// The argument of a call: an accumulator that lies in memory, or one in the making (`accumulation`), which
/// saves a pass over memory and leaves the accumulator behind. The first two parts are there for the compiler to name.
template <class Input, class Index, class Value, class E>
concept accumulator_input =
    vector_or_accumulation<Input> && same_value_type<Input, Value> &&
    (accumulator_view<Input, Value, E> || std::same_as<Input, accumulation<Index, Value, typename E::memory_space>>);

namespace detail {

/// The fault in the shape of an accumulator, as this rank sees it; its values are looked at during selection.
template <kokkos_vector View>
fault_report check_accumulator(View const& accumulator, std::int64_t length) {
  auto const size = static_cast<std::int64_t>(accumulator.extent(0));
  if (size != length) {
    return {fault::length_mismatch, size};
  }
  if (!accumulator.span_is_contiguous()) {
    return {fault::not_contiguous, 0};
  }
  return {};
}

template <class Index, class Value, class MemorySpace>
fault_report check_accumulator(accumulation<Index, Value, MemorySpace> const& making, std::int64_t length) {
  for (std::size_t const size : {making.residual.extent(0), making.gradient.extent(0), making.accumulator.extent(0)}) {
    if (static_cast<std::int64_t>(size) != length) {
      return {fault::length_mismatch, static_cast<std::int64_t>(size)};
    }
  }
  return {};
}

/// An input as a selection reads it.
template <gradient_index Index, gradient_value Value, execution_space E, class Input>
auto as_source(Input const& input) {
  if constexpr (is_accumulation<Input>) {
    return input;
  } else {
    using memory_space = typename E::memory_space;
    return candidates<Index, Value, memory_space>(array_ref<Value const, memory_space>(input.data(), input.extent(0)),
                                                  {});
  }
}

} // namespace detail

} // namespace oktopk
