// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/view_layout.hpp>

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace oktopk {

template <class E>
concept execution_space = bool(Kokkos::is_execution_space<E>::value);

/// The element types of gradients: IEEE binary32 and binary64, whose magnitudes order like their bit patterns.
template <class T>
concept gradient_value = std::same_as<T, float> || std::same_as<T, double>;

/// The element types of indices. Lengths and loop indices always have 64 bits.
template <class I>
concept gradient_index = std::same_as<I, std::int32_t> || std::same_as<I, std::int64_t>;

namespace detail {

template <class V>
concept kokkos_vector = bool(Kokkos::is_view<V>::value) && (std::size_t(V::rank) == 1);

/// The elements of a view, or of an `accumulation`, have the value type of the algorithm: a view of doubles needs an
/// algorithm whose format or type has double, such as `coo<double>`.
template <class V, class Value>
concept same_value_type = std::same_as<std::remove_const_t<typename V::value_type>, Value>;

template <class V, class Value>
concept holds_narrower =
    !std::integral<typename V::non_const_value_type> && sizeof(typename V::non_const_value_type) < sizeof(Value) &&
    std::constructible_from<Value, typename V::non_const_value_type const&>;

template <class V, class E>
concept accessible_from = bool(Kokkos::SpaceAccessibility<E, typename V::memory_space>::accessible);

/// A rank-1 view of `Value` that kernels of `E` can read: an algorithm takes it as accumulator.
template <class V, class Value, class E>
concept accumulator_view = kokkos_vector<V> && detail::same_value_type<V, Value> && accessible_from<V, E>;

/// A rank-1 view of gradients that are summed as `Value`: of `Value`, or of a narrower floating-point type, such as
/// `Kokkos::Experimental::half_t` and `bhalf_t`, or any class of that size that converts to `Value`.
template <class V, class Value, class E>
concept gradient_view =
    kokkos_vector<V> && (detail::same_value_type<V, Value> || detail::holds_narrower<V, Value>)&&accessible_from<V, E>;

} // namespace detail
} // namespace oktopk
