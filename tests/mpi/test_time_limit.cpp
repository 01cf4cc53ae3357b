// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/messages.hpp"
#include "support/mpi_ranks.hpp"

#include <oktopk/mpi.hpp>

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::mpi_communicator;
using oktopk::phase;

TEST_CASE("a wait over MPI that exceeds the time limit names the peer and the phase, and can be cancelled") {
  if (world_size() == 1) {
    return;
  }
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    comm.set_time_limit(std::chrono::milliseconds(50));
    int number = 0;
    auto never = comm.irecv(room_in(number), previous_rank(), phase::balance);
    auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
    CHECK(heard.code == fault::timed_out);
    CHECK(heard.says("rank " + std::to_string(world_rank()) + " has waited to receive from rank " +
                     std::to_string(previous_rank()) + " (balance) for more than 0.05"));
    CHECK(never.active());
    comm.cancel(std::span(&never, 1));
    CHECK_FALSE(never.active());
  });
}

TEST_CASE("an allreduce over MPI that not everybody joins in time ends on every rank, and leaves the numbers alone") {
  if (world_size() == 1) {
    return;
  }
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    comm.set_time_limit(std::chrono::milliseconds(50));
    auto const heard = outcome_of([&] {
      std::vector<float> numbers(10, 1.0F); // freed before the late rank joins
      if (world_rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
      }
      auto const inside =
          outcome_of([&] { comm.allreduce(std::span(numbers), oktopk::reduction::sum, phase::reduce); });
      if (inside.code != fault::none) {
        CHECK(numbers == std::vector<float>(10, 1.0F));
        throw oktopk::error(inside.code, inside.text);
      }
    });
    if (world_rank() != 0) { // MPI may let the late one finish
      CHECK(heard.code == fault::timed_out);
      CHECK(heard.says("rank " + std::to_string(world_rank()) + " has waited for everybody in an allreduce"));
      int number = 0;
      CHECK(outcome_of([&] { comm.isend(bytes_of(number), 0, phase::control); }).code == fault::communication);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  });
}

TEST_CASE("a reduction with a time limit gives what one without gives, also of more than a part at a time") {
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    std::size_t const length = (std::size_t(16) << 20U) / sizeof(double) + 77;
    std::vector<double> numbers(length);
    for (std::size_t i = 0; i < length; ++i) {
      numbers[i] = static_cast<double>(i % 1009) + world_rank();
    }
    std::vector<double> without = numbers;
    comm.allreduce(std::span(without), oktopk::reduction::max, phase::reduce);
    comm.set_time_limit(std::chrono::minutes(1));
    comm.allreduce(std::span(numbers), oktopk::reduction::max, phase::reduce);
    CHECK(numbers == without);
  });
}

TEST_CASE("messages and reductions over MPI work with a time limit as without") {
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    comm.set_time_limit(std::chrono::minutes(1));
    CHECK(pass_around(comm, world_rank()) == previous_rank());
    float sum = 1;
    comm.allreduce(std::span<float>(&sum, 1), oktopk::reduction::sum, phase::reduce);
    CHECK(sum == static_cast<float>(world_size()));
    comm.set_time_limit(std::chrono::nanoseconds(0));
    CHECK(pass_around(comm, world_rank()) == previous_rank());
  });
}
