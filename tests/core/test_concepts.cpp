// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What the vocabulary's concepts take and what they turn away; the compiler runs these.

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cstdint>
#include <vector>

namespace {

using E = Kokkos::DefaultHostExecutionSpace;
using host = Kokkos::HostSpace;

static_assert(oktopk::execution_space<E>);
static_assert(!oktopk::execution_space<host>, "a memory space runs nothing");
static_assert(!oktopk::execution_space<int>);

static_assert(oktopk::gradient_value<float> && oktopk::gradient_value<double>);
static_assert(!oktopk::gradient_value<int> && !oktopk::gradient_value<long double> &&
              !oktopk::gradient_value<float const>);

static_assert(oktopk::gradient_index<std::int32_t> && oktopk::gradient_index<std::int64_t>);
static_assert(!oktopk::gradient_index<std::uint32_t> && !oktopk::gradient_index<std::int16_t> &&
              !oktopk::gradient_index<float>);

// Both constnesses, managed or not, any layout: what is not contiguous is found at run time.
static_assert(oktopk::detail::accumulator_view<Kokkos::View<float*, host>, float, E>);
static_assert(oktopk::detail::accumulator_view<Kokkos::View<float const*, host>, float, E>);
static_assert(
    oktopk::detail::accumulator_view<Kokkos::View<double*, host, Kokkos::MemoryTraits<Kokkos::Unmanaged>>, double, E>);
static_assert(oktopk::detail::accumulator_view<Kokkos::View<float*, Kokkos::LayoutStride, host>, float, E>);

// One defect each.
static_assert(!oktopk::detail::kokkos_vector<std::vector<float>> && !oktopk::detail::kokkos_vector<float*>);
static_assert(!oktopk::detail::kokkos_vector<Kokkos::View<float**, host>> &&
              !oktopk::detail::kokkos_vector<Kokkos::View<float, host>>);
static_assert(!oktopk::detail::same_value_type<Kokkos::View<double*, host>, float>);
static_assert(!oktopk::detail::same_value_type<Kokkos::View<int*, host>, float>);
static_assert(oktopk::detail::same_value_type<Kokkos::View<float const*, host>, float>);
static_assert(!oktopk::detail::accumulator_view<Kokkos::View<double*, host>, float, E>);
static_assert(!oktopk::detail::accumulator_view<Kokkos::View<float**, host>, float, E>);
static_assert(!oktopk::detail::accumulator_view<std::vector<float>, float, E>);

// Memory that an execution space cannot reach: the library needs no device to see that.
struct far_memory {
  using memory_space = far_memory;
};
struct far_vector {
  using memory_space = far_memory;
};

} // namespace

template <>
struct Kokkos::SpaceAccessibility<E, far_memory> {
  enum : bool { accessible = false };
};

static_assert(oktopk::detail::accessible_from<Kokkos::View<float*, host>, E>);
static_assert(!oktopk::detail::accessible_from<far_vector, E>);
