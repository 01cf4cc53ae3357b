// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

// A stand-in for Kokkos 4.6.99, with what matters of its View: members of mdspan that are marked, or not where
// PLAIN_MDSPAN is defined, as Kokkos does for nvcc since 4.7.02.

#define KOKKOS_VERSION 40699
#define KOKKOS_ENABLE_CUDA

#ifdef PLAIN_MDSPAN
#define MARK
#else
#define MARK [[no_unique_address]]
#define MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS 1
#endif

namespace Kokkos {

struct nothing {};

struct extents {
  MARK nothing fixed;
  unsigned long length;
};

struct mapping {
  MARK extents sizes;
};

struct handle {
  void* data;
  void* tracker;
};

template <class T>
struct View {
  MARK handle where;
  MARK mapping map;
  MARK nothing accessor;
};

template <class>
struct is_execution_space;
template <class>
struct is_view;
template <class, class>
struct SpaceAccessibility;

} // namespace Kokkos
