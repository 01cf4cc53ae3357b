// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared.hpp"

#include <cstdio>
#include <string_view>

/// Whether an algorithm that is made before Kokkos is initialised is an error that says so.
static bool refuses_without_kokkos() {
  using space = Kokkos::DefaultHostExecutionSpace;
  using algorithm = oktopk::ok_topk<space, oktopk::self_communicator>;
  try {
    algorithm const allreduce(space(), oktopk::self_communicator(), {.length = 10, .k = 1});
  } catch (oktopk::error const& heard) {
    std::printf("%s\n", heard.what());
    return heard.code() == oktopk::fault::bad_state &&
           std::string_view(heard.what()).find("Kokkos is not initialised") != std::string_view::npos;
  }
  return false;
}

int main(int argc, char** argv) {
  // Kokkos 4 ends the program itself, where the execution space is made.
  bool const refused = KOKKOS_VERSION >= 40000 || refuses_without_kokkos();
  Kokkos::ScopeGuard const kokkos(argc, argv);
  float const here = first_weight(10);
  float const there = first_weight_in_two(10);
  std::printf("first weight: %g here, %g there, -1 expected\n", static_cast<double>(here), static_cast<double>(there));
  return refused && here == -1 && there == -1 ? 0 : 1;
}
