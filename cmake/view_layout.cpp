// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Compiles where host and device code lay out a class with a View in it alike, and stops in the assembler where they do
// not: compiled by CMake and by tests/backends/compile.sh, never run.
//
// The front end of nvcc knows one layout, which sizeof and static_assert see; device code is made by another part of it
// with another layout where the two disagree on [[no_unique_address]]. Only addresses in device code tell.

#include <Kokkos_Core.hpp>

#include <cstddef>

// What a kernel captures: a View, and numbers behind it.
struct captured {
  Kokkos::View<double*> view;
  long number;
};

#ifndef __CUDACC_DEBUG__ // where nothing is optimised, the assembler would see it in any case
__global__ void oktopk_view_layout(captured const* objects) {
  auto const* const first = reinterpret_cast<char const*>(objects);
  auto const* const number = reinterpret_cast<char const*>(&objects->number);
  auto const* const second = reinterpret_cast<char const*>(objects + 1);
  // Both are constants: of what is not true nothing is left, and the assembler does not see it.
  if (number - first != offsetof(captured, number) || second - first != sizeof(captured)) {
    asm volatile("oktopk_views_lie_differently_on_host_and_device;");
  }
}
#endif
