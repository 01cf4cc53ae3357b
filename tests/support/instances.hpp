// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"

#include <array>

namespace oktopk_tests {

/// Two instances beside the default one, where this Kokkos makes such and tells them apart.
inline std::array<execution, 2> two_instances() {
#if KOKKOS_VERSION >= 40000
  if (execution().concurrency() > 1) { // one thread cannot be parted
    auto const made = Kokkos::Experimental::partition_space(execution(), 1, 1);
    return {made[0], made[1]};
  }
#endif
  return {};
}

} // namespace oktopk_tests
