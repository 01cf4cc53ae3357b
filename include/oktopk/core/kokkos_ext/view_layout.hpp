// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

namespace oktopk::detail {

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

} // namespace oktopk::detail
