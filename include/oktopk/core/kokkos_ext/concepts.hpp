// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// As core/version.hpp has it, which is on a floor above: some headers come here first.
#if __cplusplus < 202002L
#error "oktopk needs C++20: compile with -std=c++20, or a newer standard"
#include <needs_cxx20>
#endif

#include <Kokkos_Core.hpp>

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace oktopk {

template <class E>
concept execution_space = bool(Kokkos::is_execution_space<E>::value);

/// What formats, exchanges and sums of regions ask of a value: a number of 4 or 8 bytes.
template <class T>
concept wire_value = (std::floating_point<T> || std::integral<T>)&&(sizeof(T) == 4 || sizeof(T) == 8);

/// The element types of gradients: IEEE binary32 and binary64, whose magnitudes order like their bit patterns.
template <class T>
concept gradient_value = wire_value<T> && (std::same_as<T, float> || std::same_as<T, double>);

/// The element types of indices. Lengths and loop indices always have 64 bits.
template <class Index>
concept gradient_index = std::same_as<Index, std::int32_t> || std::same_as<Index, std::int64_t>;

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

/// True if host and device code agree on the places of data that lie behind a View.
///
/// Since 4.7 (in development 4.6.99) Kokkos makes its View of an mdspan, whose members are marked
/// `[[no_unique_address]]`. nvcc from 12.9 on lays out a class with such members in two ways, one for the host and for
/// `sizeof`, and a shorter one in device code: a kernel reads garbage for all that it captured behind a View. Kokkos
/// drops the mark for these compilers since 4.7.02 and 5.0 (kokkos/kokkos #8562, #8615).
///
/// `kokkos` is KOKKOS_VERSION; `nvcc` is 100 x major + minor, 0 for other compilers; `legacy` says that View is the one
/// without mdspan, `marked` that mdspan uses the attribute.
constexpr bool views_lie_alike(int kokkos, int nvcc, bool legacy, bool marked) {
  return nvcc < 1209 || kokkos < 40699 || legacy || !marked;
}

#if defined(__NVCC__) && defined(KOKKOS_ENABLE_CUDA)
inline constexpr int nvcc_version = __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__;
#else
inline constexpr int nvcc_version = 0;
#endif

#ifdef KOKKOS_ENABLE_IMPL_VIEW_LEGACY
inline constexpr bool view_is_legacy = true;
#else
inline constexpr bool view_is_legacy = false;
#endif

#if defined(MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS) && !defined(MDSPAN_IMPL_USE_FAKE_ATTRIBUTE_NO_UNIQUE_ADDRESS)
inline constexpr bool mdspan_is_marked = true;
#else
inline constexpr bool mdspan_is_marked = false;
#endif

static_assert(
    views_lie_alike(KOKKOS_VERSION, nvcc_version, view_is_legacy, mdspan_is_marked),
    "oktopk: with this Kokkos and nvcc, kernels would read garbage behind a Kokkos::View. Take Kokkos 4.7.02 "
    "or later, or configure this one (up to 5.2) with -DKokkos_ENABLE_IMPL_VIEW_LEGACY=ON (docs/backends.md says why)");

} // namespace detail
} // namespace oktopk
