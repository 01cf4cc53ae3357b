// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"

#include <oktopk/core/kokkos_ext/execution.hpp>

#include <span>

#if __has_include(<dlfcn.h>)
#include <dlfcn.h>
#endif

// Tests are smaller where the device is emulated: they have the same cases.
namespace oktopk_tests {

/// Whether kernels run on the emulator in tests/cuda_emulator.
inline bool emulated() {
#if __has_include(<dlfcn.h>)
  static bool const found =
      oktopk::detail::is_device<execution> && dlsym(RTLD_DEFAULT, "oktopk_cuda_emulator_read_counts") != nullptr;
  return found;
#else
  return false;
#endif
}

/// The numbers of ranks for a suite that makes many calls with each: on an emulated device no more than 8, since the
/// launches of a call grow with the ranks, and the calls do, too.
inline std::span<int const> affordable_rank_counts() {
  std::span<int const> const all(rank_counts);
  return emulated() ? all.first(7) : all;
}

} // namespace oktopk_tests
