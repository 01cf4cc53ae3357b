// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks over TCP without MPI: processes that any launcher has started, on one machine or on several, and that meet in a
// folder which all of them see. On each machine:
//
//   ./tcp_ranks <folder> <rank> <number of ranks>
//
// Without arguments the program starts four ranks of its own and fails when one of them gets a wrong sum.

#include <oktopk/allreduce.hpp>
#include <oktopk/tcp.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

namespace {

bool sums_are_right(std::filesystem::path const& folder, int rank, int ranks) {
  Kokkos::ScopeGuard const kokkos;
  auto comm = oktopk::tcp_communicator::rendezvous(folder, "first", rank, ranks);
  using space = Kokkos::DefaultExecutionSpace;
  oktopk::ok_topk allreduce(space(), comm, {.length = 10000, .k = 100});
  Kokkos::View<float*> const gradient("gradient", 10000);
  Kokkos::deep_copy(gradient, static_cast<float>(rank + 1));
  auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), allreduce(gradient).values());
  std::cout << "rank " + std::to_string(rank) + " has " + std::to_string(sums.extent(0)) +
                   " sums, of which the first is " + std::to_string(sums(0)) + "\n";
  return sums(0) == static_cast<float>(ranks * (ranks + 1)) / 2;
}

bool runs(std::filesystem::path const& folder, int rank, int ranks) {
  try {
    return sums_are_right(folder, rank, ranks);
  } catch (oktopk::error const& caught) {
    std::cerr << "rank " << rank << ": " << caught.what() << "\n";
    return false;
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc == 4) {
    return runs(argv[1], std::atoi(argv[2]), std::atoi(argv[3])) ? EXIT_SUCCESS : EXIT_FAILURE;
  }
  auto const folder = std::filesystem::temp_directory_path() / ("oktopk-example-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  for (int rank = 0; rank < 4; ++rank) {
    if (fork() == 0) {
      bool const right = runs(folder, rank, 4);
      std::cout << std::flush;
      _exit(right ? EXIT_SUCCESS : EXIT_FAILURE);
    }
  }
  bool all = true;
  for (int status = 0; wait(&status) > 0;) {
    all = all && status == 0;
  }
  std::filesystem::remove_all(folder);
  return all ? EXIT_SUCCESS : EXIT_FAILURE;
}
