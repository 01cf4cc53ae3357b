// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Processes of one node as ranks, without MPI: the class in shared_memory.hpp. Each process makes a communicator with the
// same name, its rank and the number of ranks. The program fails when a rank gets a wrong sum, waits for a rank that has
// ended without an error, or cannot start where an earlier job was ended during its start.

#include "shared_memory.hpp"

#include <oktopk/catalogue/catalogue.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>

using shared_memory::shared_memory_communicator;

static_assert(oktopk::communicator<shared_memory_communicator>);

namespace {

/// Runs `body(rank)` in as many processes; true if it is true in all of them.
template <class Body>
bool in_processes(int ranks, Body const& body) {
  for (int rank = 0; rank < ranks; ++rank) {
    if (fork() == 0) {
      bool right = false;
      try {
        right = body(rank);
      } catch (std::exception const& thrown) {
        std::cerr << "rank " << rank << ": " << thrown.what() << "\n";
      }
      _exit(right ? EXIT_SUCCESS : EXIT_FAILURE);
    }
  }
  bool all = true;
  for (int status = 0; wait(&status) > 0;) {
    all = all && status == 0;
  }
  return all;
}

/// Sums of algorithms by name, and messages that are longer than a ring.
bool sums_are_right(shared_memory_communicator comm) {
  Kokkos::ScopeGuard const kokkos; // after fork: its threads are not there in the child of a process that has them
  Kokkos::View<float*> const gradient("gradient", 10000);
  Kokkos::deep_copy(gradient, static_cast<float>(comm.rank() + 1));
  float const sum = static_cast<float>(comm.size() * (comm.size() + 1)) / 2;
  bool right = true;
  for (char const* const text : {"ok_topk", "topk_a(format=packed)", "ring_chunked"}) {
    auto allreduce = oktopk::make_allreduce(Kokkos::DefaultExecutionSpace(), comm, text, {.length = 10000, .k = 100});
    auto const sums = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), allreduce(gradient).values());
    right = right && sums.extent(0) >= 100 && sums(0) == sum && sums(99) == sum;
  }
  std::vector<double> whole(200000);
  std::iota(whole.begin(), whole.end(), comm.rank());
  comm.allreduce(std::span(whole), oktopk::reduction::max, oktopk::phase::reduce);
  return right && whole.front() == comm.size() - 1 && whole.back() == 199999 + comm.size() - 1;
}

/// Rank 1 ends with nothing said: rank 0, which waits for it, gets an error that names it; rank 2 hears it of rank 0.
bool an_end_is_an_error(shared_memory_communicator comm) {
  if (comm.rank() == 1) {
    _exit(EXIT_SUCCESS);
  }
  try {
    std::byte room[4];
    shared_memory_communicator::request receive = comm.irecv(room, comm.rank() == 0 ? 1 : 0, oktopk::phase::reduce);
    comm.wait_all(std::span(&receive, 1));
  } catch (oktopk::error const& heard) {
    return comm.rank() == 0 ? std::string(heard.what()).find("but rank 1 has ended") != std::string::npos
                            : heard.code() == oktopk::fault::abandoned;
  }
  return false;
}

} // namespace

int main() {
  std::string const name = "/oktopk-example-" + std::to_string(getpid());
  auto const with = [&](int ranks, auto const& body) {
    return in_processes(ranks, [&](int rank) { return body(shared_memory_communicator(name, rank, ranks)); });
  };
  bool const sums = with(1, sums_are_right) && with(5, sums_are_right);
  bool const ends = with(3, an_end_is_an_error);
  // Two of five ranks come, and are ended while they wait for the others.
  in_processes(2, [&](int rank) -> bool {
    std::thread([&] { shared_memory_communicator(name, rank, 5); }).detach();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    _exit(EXIT_SUCCESS);
  });
  bool const again = with(2, sums_are_right);
  std::cout << "sums: " << sums << ", an error where a rank ends: " << ends << ", a new start: " << again << "\n";
  return sums && ends && again ? EXIT_SUCCESS : EXIT_FAILURE;
}
