// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifdef OKTOPK_BENCH_WITH_MPI
#include "bench.hpp"
#include "run.hpp"

#include "programs/mpi.hpp"
#include "programs/options.hpp"

#include <oktopk/mpi.hpp>

#include <exception>

namespace oktopk_bench {

int run_with_mpi(command_line const& read) {
#ifdef OKTOPK_BENCH_SIMULATED
  std::string const note; // simulated ranks have a node each
#else
  std::string const note = oktopk_programs::crowding_note(MPI_COMM_WORLD);
#endif
  try {
    auto comm = oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD);
    oktopk_programs::set_deadline(comm, read.asked.deadline);
    run_bench(comm, read, note);
    return 0;
  } catch (std::exception const& failure) {
    return oktopk_programs::report_failure("oktopk_bench", failure);
  }
}

} // namespace oktopk_bench
#endif
