// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include <oktopk/allreduce.hpp>
#include <oktopk/mpi.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  {
    using space = Kokkos::DefaultExecutionSpace;
    auto comm = oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD);
    int const length = 1'000'000;
    oktopk::ok_topk<space, oktopk::mpi_communicator> allreduce(space(), comm, {.length = length, .density = 0.01});

    Kokkos::View<float*, space> gradient("gradient", length);
    int const peak = 1000 * (comm.rank() + 1); // every rank has its largest values elsewhere
    Kokkos::parallel_for(
        "gradient", length,
        KOKKOS_LAMBDA(int i) { gradient(i) = 1.0F / (1.0F + static_cast<float>(std::abs(i - peak))); });

    auto const& update = allreduce(gradient); // one call per training iteration

    auto const indices = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.indices());
    auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.values());
    if (comm.rank() == 0) {
      std::printf("%zu sums over %d rank(s); at index 1000 rank 0 has 1, its largest:\n", sums.extent(0), comm.size());
      for (std::size_t i = 998; i < 1003 && i < sums.extent(0); ++i) {
        std::printf("  index %d: %f\n", indices(i), static_cast<double>(sums(i)));
      }
    }
  }
  Kokkos::finalize();
  MPI_Finalize();
}
