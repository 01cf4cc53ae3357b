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
