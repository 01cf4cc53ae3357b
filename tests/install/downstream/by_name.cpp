// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A program that links what is compiled.
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/self.hpp>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  Kokkos::DefaultExecutionSpace const exec;
  auto allreduce =
      oktopk::make_allreduce(exec, oktopk::self_communicator(), "topk_a(format=packed)", {.length = 100, .k = 3});
  Kokkos::View<float*> const gradient("gradient", 100);
  Kokkos::deep_copy(gradient, 1.0F);
  return allreduce(gradient).indices().size() == 3 ? 0 : 1;
}
