// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Data-parallel training of a network on Fashion-MNIST, with the gradients summed by an algorithm of oktopk.

#include "blas_threads.hpp"
#include "trainer.hpp"

#include "programs/arguments.hpp"
#include "programs/mpi.hpp"
#include "programs/options.hpp"

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace {

int ranks_on_this_machine() {
  MPI_Comm neighbours = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours);
  int count = 1;
  MPI_Comm_size(neighbours, &count);
  MPI_Comm_free(&neighbours);
  return count;
}

void train(oktopk::mpi_communicator& world, fashion::options const& how) {
  fashion::together(world, "output", [&] {
    for (std::filesystem::path const& file : {how.csv, how.summary, how.log}) {
      if (world.rank() == 0 && !file.empty()) {
        oktopk_programs::pending_file{file}; // can be made, and vanishes again
      }
    }
  });
  fashion::share_cores_among(ranks_on_this_machine());

  fashion::execution const exec;
  auto const data = fashion::together(world, "data", [&] {
    return fashion::rank_data{fashion::load_shard(exec, how.data, "train", world.rank(), world.size()),
                              fashion::load_shard(exec, how.data, "t10k", world.rank(), world.size())};
  });
  oktopk::agreement("the data sets")
      .fact("training images", data.training.whole)
      .fact("test images", data.test.whole)
      .check_on(world);

  auto allreduce = fashion::make_allreduce(exec, fashion::communicator(world), how, fashion::network::length());
  fashion::trainer(exec, world, how, data, allreduce).run();
}

void run(oktopk::mpi_communicator world, oktopk_programs::arguments& given, std::string const& fault_of_kokkos) {
  auto const how = fashion::together(world, "command line", [&] {
    if (!fault_of_kokkos.empty()) {
      throw std::runtime_error(fault_of_kokkos);
    }
    return fashion::parse_options(given.own());
  });
  oktopk_programs::set_deadline(world, how.deadline);
  oktopk::agreement("the options").fact("options", how.shared_part()).check_on(world);
  if (how.text.empty()) {
    train(world, how);
  } else if (world.rank() == 0) {
    std::fputs(how.text.c_str(), stdout);
  }
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  oktopk_programs::arguments given(argc, argv);
  std::string const fault = given.initialize_kokkos();
  int status = 0;
  try {
    run(oktopk::mpi_communicator::duplicate(MPI_COMM_WORLD), given, fault);
  } catch (std::exception const& failure) {
    status = oktopk_programs::report_failure("train_fashion_mnist", failure);
  }
  Kokkos::finalize();
  status = oktopk_programs::status_of_output("train_fashion_mnist", status);
  MPI_Finalize();
  return status;
}
