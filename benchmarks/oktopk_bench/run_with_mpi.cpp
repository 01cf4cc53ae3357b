// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifdef OKTOPK_BENCH_WITH_MPI
#include "bench.hpp"
#include "programs.hpp"

#include <oktopk/mpi.hpp>

#include <cstdio>
#include <exception>

namespace oktopk_bench {
namespace {

// Whether every rank throws this error: a broken connection, or memory that is short on one rank, is that rank's alone.
bool shared_by_all(std::exception const& failure) {
  auto const* const known = dynamic_cast<oktopk::error const*>(&failure);
  return known != nullptr && known->code() != oktopk::fault::communication;
}

int run_on_ranks(command_line const& read, int rank) {
  try {
    std::string const help = run_bench(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD), read);
    if (rank == 0) {
      std::fputs(help.c_str(), stdout);
    }
    return 0;
  } catch (std::exception const& failure) {
    if (!shared_by_all(failure)) {
      complain("rank " + std::to_string(rank) + ": " + failure.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) {
      complain(failure.what());
    }
    return 1;
  }
}

} // namespace

int run_with_mpi(command_line read, arguments& given) {
  // Threads of an execution space never call MPI.
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::string const fault = initialize_kokkos(given);
  if (read.fault.empty()) {
    read.fault = fault;
  }
  int const status = run_on_ranks(read, rank);
  Kokkos::finalize();
  std::fflush(stdout);
  MPI_Finalize();
  return status;
}

} // namespace oktopk_bench
#endif
