// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "run.hpp"

#ifdef OKTOPK_BENCH_WITH_MPI
#include <mpi.h>
#endif

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace {

// The number of processes that a launcher says it has started: Open MPI's, MPICH's, or srun. Several processes that do
// not know each other would write the same files.
int started_processes() {
  for (char const* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    char const* const size = std::getenv(name);
    if (size != nullptr && std::atoi(size) > 1) {
      return std::atoi(size);
    }
  }
  return 1;
}

} // namespace

int main(int argc, char** argv) {
  oktopk_programs::arguments given(argc, argv);
  // Not from the parsed options: a command line with a fault in it has to be reported by all ranks together as well.
  bool const in_process = std::any_of(given.own().begin(), given.own().end(), [](std::string const& argument) {
    return argument == "--in-process" || argument.starts_with("--in-process=");
  });
  auto read = oktopk_bench::read_command_line(given.own(), oktopk_bench::list_text());
  int const started = started_processes();
  if (in_process && started > 1) {
    read.fault = "--in-process makes its ranks in one process, but MPI started several";
  }
#ifdef OKTOPK_BENCH_WITH_MPI
  bool const with_mpi = !in_process || started > 1;
  if (with_mpi) {
    // Threads of an execution space never call MPI.
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    int ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (started > 1 && ranks == 1) {
      read.fault =
          "the launcher has started " + std::to_string(started) +
          " processes, but MPI has 1 rank in each: this program is of another MPI than the launcher (srun: see "
          "its option --mpi)";
    }
  }
#else
  if (read.fault.empty() && read.text.empty() && !in_process) {
    read.fault = "this program was built without MPI; run it with --in-process P";
  }
#endif
  std::string const fault = given.initialize_kokkos();
  read.fault = read.fault.empty() ? fault : read.fault;
#ifdef OKTOPK_BENCH_WITH_MPI
  int status = with_mpi ? oktopk_bench::run_with_mpi(read) : oktopk_bench::run_in_process(read);
#else
  int status = oktopk_bench::run_in_process(read);
#endif
  Kokkos::finalize();
  status = oktopk_programs::status_of_output("oktopk_bench", status);
#ifdef OKTOPK_BENCH_WITH_MPI
  if (with_mpi) {
    MPI_Finalize();
  }
#endif
  return status;
}
