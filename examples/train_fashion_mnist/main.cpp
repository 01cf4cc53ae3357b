// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Data-parallel training of a network on Fashion-MNIST, with the gradients summed by an algorithm of oktopk.

#include "agreement.hpp"
#include "algorithms.hpp"
#include "blas_threads.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "training.hpp"

#include <mpi.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string_view>
#include <vector>

namespace {

namespace fs = std::filesystem;

int rank_in(MPI_Comm comm) {
  int rank = 0;
  MPI_Comm_rank(comm, &rank);
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  MPI_Comm_size(comm, &size);
  return size;
}

int ranks_on_this_machine() {
  MPI_Comm neighbours = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &neighbours);
  int const count = size_of(neighbours);
  MPI_Comm_free(&neighbours);
  return count;
}

void train(fashion::options const& how) {
  MPI_Comm const world = MPI_COMM_WORLD;
  int const rank = rank_in(world);
  int const ranks = size_of(world);
  fashion::on_every_rank(world, [&] {
    for (fs::path const& file : {how.csv, how.summary, how.log}) {
      if (rank == 0 && !file.empty()) {
        fashion::require_writable(file);
      }
    }
  });
  fashion::share_cores_among(ranks_on_this_machine());

  fashion::execution const exec;
  fashion::rank_data const data = fashion::on_every_rank(world, [&] {
    return fashion::rank_data{fashion::load_shard(exec, how.data, "train", rank, ranks),
                              fashion::load_shard(exec, how.data, "t10k", rank, ranks)};
  });
  fashion::require_same(
      world, std::to_string(data.training.whole) + " training and " + std::to_string(data.test.whole) + " test images",
      "the data sets");

  fashion::communicator const comm(oktopk::mpi_communicator::duplicate(world));
  fashion::train({exec, comm, world, how, data});
}

// Every rank gets here with the same failure: one of them reports it.
int fail_together(std::exception const& failure) {
  if (rank_in(MPI_COMM_WORLD) == 0) {
    std::fprintf(stderr, "train_fashion_mnist: %s\n", failure.what());
    std::fflush(stderr);
  }
  return 1;
}

// The other ranks may be waiting for this one.
int fail_alone(std::exception const& failure) {
  std::fprintf(stderr, "train_fashion_mnist: rank %d: %s\n", rank_in(MPI_COMM_WORLD), failure.what());
  std::fflush(stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return 1;
}

int run(std::vector<char*> arguments) {
  try {
    auto const how = fashion::on_every_rank(MPI_COMM_WORLD, [&] {
      return fashion::parse_options(static_cast<int>(arguments.size()), arguments.data(), fashion::algorithm_names());
    });
    fashion::require_same(MPI_COMM_WORLD, how.shared_part(), "the options");
    if (!how.help.empty()) {
      if (rank_in(MPI_COMM_WORLD) == 0) {
        std::fputs(how.help.c_str(), stdout);
      }
      return 0;
    }
    train(how);
    return 0;
  } catch (fashion::agreed_failure const& failure) {
    return fail_together(failure);
  } catch (oktopk::error const& failure) {
    // All errors of the library are common to the ranks but those that MPI reports.
    return failure.code() == oktopk::fault::communication ? fail_alone(failure) : fail_together(failure);
  } catch (std::exception const& failure) {
    return fail_alone(failure);
  }
}

} // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  // Each to whom it is meant for: Kokkos takes what begins with --kokkos.
  std::vector<char*> own;
  std::vector<char*> for_kokkos;
  for (int i = 0; i < argc; ++i) {
    bool const kokkos = std::string_view(argv[i]).starts_with("--kokkos");
    if (i == 0 || !kokkos) {
      own.push_back(argv[i]);
    }
    if (i == 0 || kokkos) {
      for_kokkos.push_back(argv[i]);
    }
  }
  int kokkos_count = static_cast<int>(for_kokkos.size());
  for_kokkos.push_back(nullptr);
  Kokkos::initialize(kokkos_count, for_kokkos.data());
  int const code = run(own);
  Kokkos::finalize();
  MPI_Finalize();
  return code;
}
