// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  float const here = first_weight(10);
  float const there = first_weight_in_two(10);
  std::printf("first weight: %g here, %g there, -1 expected\n", static_cast<double>(here), static_cast<double>(there));
  return here == -1 && there == -1 ? 0 : 1;
}
