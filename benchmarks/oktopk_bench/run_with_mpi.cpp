// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifdef OKTOPK_BENCH_WITH_MPI
#include "bench.hpp"
#include "run.hpp"

#include "programs/crowding.hpp"

#include <oktopk/mpi.hpp>

#include <exception>

namespace oktopk_bench {

int run_with_mpi(command_line const& read) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
#ifdef OKTOPK_BENCH_SIMULATED
  std::string const note; // simulated ranks have a node each
#else
  std::string const note = oktopk_programs::crowding_note(MPI_COMM_WORLD);
#endif
  try {
    run_bench(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD), read, note);
    return 0;
  } catch (std::exception const& failure) {
    // Every rank throws the same error, but for a broken connection, or memory that is short on one rank.
    auto const* const known = dynamic_cast<oktopk::error const*>(&failure);
    if (known == nullptr || known->code() == oktopk::fault::communication) {
      oktopk_programs::complain("oktopk_bench", "rank " + std::to_string(rank) + ": " + failure.what());
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    if (rank == 0) {
      oktopk_programs::complain("oktopk_bench", failure.what());
    }
    return 1;
  }
}

} // namespace oktopk_bench
#endif
