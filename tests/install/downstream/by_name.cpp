// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A program that links what is compiled, by text and by type, and not MPI.
#include <oktopk/allreduce.hpp>
#include <oktopk/catalogue/catalogue.hpp>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  Kokkos::DefaultExecutionSpace const exec;
  auto allreduce =
      oktopk::make_allreduce(exec, oktopk::self_communicator(), "topk_a(format=packed)", {.length = 100, .k = 3});
  Kokkos::View<float*> const gradient("gradient", 100);
  Kokkos::deep_copy(gradient, 1.0F);
  bool right = allreduce(gradient).indices().size() == 3;
  oktopk::in_process::run(1, [&](oktopk::in_process_communicator comm) {
    oktopk::ok_topk by_type(exec, comm, {.length = 100, .k = 3});
    right = right && by_type(gradient).indices().size() == 3;
  });
  return right ? 0 : 1;
}
