// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <oktopk/allreduce.hpp>
#include <oktopk/mpi.hpp>
#include <oktopk/nccl.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv); // gives each rank of a machine another GPU
  {
    using space = Kokkos::DefaultExecutionSpace;
    auto comm = oktopk::nccl_communicator(space(), oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD));
    comm.bulk().set_time_limit(std::chrono::seconds(60));
    int const length = 100'000;
    oktopk::ok_topk<space, decltype(comm)> allreduce(space(), comm, {.length = length, .density = 0.01});

    Kokkos::View<float*, space> gradient("gradient", length);
    int const peak = 1000 * (comm.rank() + 1); // every rank has its largest values elsewhere
    Kokkos::parallel_for(
        "gradient", length,
        KOKKOS_LAMBDA(int i) { gradient(i) = 1.0F / (1.0F + static_cast<float>(std::abs(i - peak))); });

    auto const& update = allreduce(gradient); // entries go from GPU to GPU, numbers of the host by MPI

    if (comm.rank() == 0) {
      std::printf("%zu sums over %d rank(s)\n", update.indices().extent(0), comm.size());
    }
  }
  Kokkos::finalize();
  MPI_Finalize();
}
