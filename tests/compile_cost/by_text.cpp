// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A program that takes its algorithm by a text and links oktopk::catalogue: it compiles no algorithm.
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/mpi.hpp>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int sums = 0;
  {
    Kokkos::ScopeGuard const kokkos(argc, argv);
    Kokkos::DefaultExecutionSpace const exec;
    auto const comm = oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD);
    auto allreduce = oktopk::make_allreduce(exec, comm, argc > 1 ? argv[1] : "ok_topk", {.length = 1000, .k = 10});
    Kokkos::View<float*> const gradient("gradient", 1000);
    Kokkos::parallel_for(
        "fill", 1000, KOKKOS_LAMBDA(int i) { gradient(i) = 1.0F; });
    sums = static_cast<int>(allreduce(gradient).indices().size());
  }
  MPI_Finalize();
  return sums > 0 ? 0 : 1;
}
