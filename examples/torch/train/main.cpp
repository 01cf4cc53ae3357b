// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Data-parallel training of networks of torch: the workloads of the paper's section 5 at a size that a CPU can train.

#include "options.hpp"
#include "trainer.hpp"
#include "workload.hpp"

#include "programs/arguments.hpp"
#include "programs/mpi.hpp"
#include "programs/options.hpp"
#include "programs/together.hpp"

#include <ATen/Parallel.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

int ranks_on_this_machine() {
  MPI_Comm neighbours = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours);
  int count = 1;
  MPI_Comm_size(neighbours, &count);
  MPI_Comm_free(&neighbours);
  return count;
}

void run(oktopk::mpi_communicator world, oktopk_programs::arguments const& given) {
  auto const how = oktopk_programs::together(world, "command line", oktopk::fault::option_out_of_range, [&] {
    return torch_training::completed(torch_training::parse_options(given.own()));
  });
  oktopk_programs::set_deadline(world, how.deadline);
  oktopk::agreement("the options").fact("options", how.shared_part()).check_on(world);
  if (!how.to_print.empty()) {
    if (world.rank() == 0) {
      std::fputs(how.to_print.c_str(), stdout);
    }
    return;
  }
  if (std::getenv("OMP_NUM_THREADS") == nullptr) {
    int const cores = static_cast<int>(std::thread::hardware_concurrency());
    at::set_num_threads(std::max(1, cores / ranks_on_this_machine()));
  }
  torch_training::train(world, how);
}

} // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level); // with less, buckets are reduced by the caller
  oktopk_programs::arguments given(argc, argv);
  std::string const fault = given.initialize_kokkos();
  int status = 0;
  try {
    if (!fault.empty()) {
      throw std::runtime_error(fault);
    }
    run(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD), given);
  } catch (std::exception const& failure) {
    status = oktopk_programs::report_failure("train_torch", failure);
  }
  Kokkos::finalize();
  status = oktopk_programs::status_of_output("train_torch", status);
  MPI_Finalize();
  return status;
}
