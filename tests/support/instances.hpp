// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"

#include <array>

namespace oktopk_tests {

/// Two instances beside the default one, where this Kokkos makes such and tells them apart. On CUDA with streams that wait
/// for no other one, as those that Kokkos makes do for the default stream: they live as long as the program.
inline std::array<execution, 2> two_instances() {
#if defined(KOKKOS_ENABLE_CUDA)
  static auto const streams = [] {
    std::array<cudaStream_t, 2> made{};
    for (cudaStream_t& each : made) {
      cudaStreamCreateWithFlags(&each, cudaStreamNonBlocking);
    }
    return made;
  }();
  return {execution(streams[0]), execution(streams[1])};
#elif KOKKOS_VERSION >= 40000
  if (execution().concurrency() > 1) { // one thread cannot be parted
    auto const made = Kokkos::Experimental::partition_space(execution(), 1, 1);
    return {made[0], made[1]};
  }
  return {};
#else
  return {};
#endif
}

} // namespace oktopk_tests
