// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk/allreduce.hpp>
#include <oktopk/mpi.hpp>

#include <mpi.h>

#include <cstdio>

namespace {

// Every rank has its largest entry at 42, so the largest of the sums is there too.
bool sum_is_right() {
  using space = Kokkos::DefaultHostExecutionSpace;
  auto comm = oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD);

  Kokkos::View<float*, space::memory_space> const accumulator("accumulator", 100);
  accumulator(42) = -3;
  accumulator(7) = comm.rank() == 0 ? 2 : 0;

  oktopk::ok_topk<space, oktopk::mpi_communicator> allreduce(space(), comm, {.length = 100, .k = 1});
  auto const update = allreduce(accumulator);
  space().fence();
  return update.indices().extent(0) == 1 && update.indices()(0) == 42 &&
         update.values()(0) == -3 * static_cast<float>(comm.size());
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Kokkos::initialize(argc, argv);
  bool const right = sum_is_right();
  std::puts(right ? "the sum is right" : "wrong result");
  Kokkos::finalize();
  MPI_Finalize();
  return right ? 0 : 1;
}
