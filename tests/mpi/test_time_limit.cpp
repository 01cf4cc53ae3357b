// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/caught.hpp"
#include "support/messages.hpp"
#include "support/mpi_ranks.hpp"

#include <oktopk/mpi.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::mpi_communicator;
using oktopk::phase;

TEST_CASE_ON_ALL_RANKS(
    "a wait over MPI that exceeds the time limit names the peer, the phase and the limit, and can be cancelled") {
  if (world_size() == 1) {
    return;
  }
  std::pair<std::chrono::nanoseconds, char const*> const limits[] = {{std::chrono::milliseconds(50), "0.05"},
                                                                     {std::chrono::nanoseconds(1), "1 ns"}};
  for (auto const& [limit, text] : limits) {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    comm.set_time_limit(limit);
    int number = 0;
    auto never = comm.irecv(space_in(number), previous_rank(), phase::balance);
    auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
    // Or it hears of another rank's first.
    CHECK((heard.code == fault::timed_out || heard.code == fault::abandoned));
    CHECK(heard.says(std::string(" (balance) for more than ") + text));
    CHECK(heard.says((heard.code == fault::timed_out ? "rank " + std::to_string(world_rank()) : std::string()) +
                     " has waited to receive from rank " +
                     (heard.code == fault::timed_out ? std::to_string(previous_rank()) : "")));
    CHECK(never.active());
    comm.cancel(std::span(&never, 1));
    CHECK_FALSE(never.active());
  }
}

TEST_CASE_ON_ALL_RANKS(
    "an allreduce over MPI that not everybody joins in time ends on every rank, and leaves the numbers alone") {
  if (world_size() == 1) {
    return;
  }
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  comm.set_time_limit(std::chrono::milliseconds(50));
  if (world_rank() == 0) { // joins when all others have left
    MPI_Barrier(MPI_COMM_WORLD);
  }
  auto const heard = outcome_of([&] {
    std::vector<float> numbers(10, 1.0F); // freed before the late rank joins
    auto const inside = outcome_of([&] { comm.allreduce(std::span(numbers), oktopk::reduction::sum, phase::reduce); });
    if (inside.code != fault::none) {
      CHECK(numbers == std::vector<float>(10, 1.0F));
      throw oktopk::error(inside.code, inside.text);
    }
  });
  if (world_rank() != 0) { // MPI may let the late one finish
    MPI_Barrier(MPI_COMM_WORLD);
    bool const is_first = heard.code == fault::timed_out; // the others are told
    CHECK((is_first || heard.code == fault::abandoned));
    CHECK(heard.says("has waited for everybody in an allreduce for more than 0.05"));
    int number = 0;
    auto const later = outcome_of([&] { comm.isend(bytes_of(number), 0, phase::control); });
    CHECK(later.code == heard.code);
    CHECK(later.says("the communicator cannot be used any more: "));
    CHECK(later.says("has waited for everybody in an allreduce"));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE_ON_ALL_RANKS("a reduction with a time limit gives what one without gives, in a copy and not") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  auto const length =
      GENERATE(std::size_t(0), std::size_t(1), std::size_t(8192), std::size_t(8193), std::size_t(2000000));
  std::vector<double> numbers(length);
  for (std::size_t i = 0; i < length; ++i) {
    numbers[i] = static_cast<double>(i % 1009) + world_rank();
  }
  std::vector<double> without = numbers;
  comm.set_time_limit(std::chrono::nanoseconds(0));
  CHECK(pass_around(comm, world_rank()) == previous_rank());
  comm.allreduce(std::span(without), oktopk::reduction::max, phase::reduce);
  comm.set_time_limit(std::chrono::minutes(1));
  comm.allreduce(std::span(numbers), oktopk::reduction::max, phase::reduce);
  CHECK(numbers == without);
}

TEST_CASE_ON_ALL_RANKS("a wait in vain over MPI says what the ranks were doing, what has come and what has not") {
  if (world_size() == 1) {
    return;
  }
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  if (world_rank() > 1) { // idle: nobody tells them in time
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    return;
  }
  int const peer = 1 - world_rank();
  comm.set_time_limit(std::chrono::milliseconds(100));
  comm.begin_operation("scheme", 12);
  int here = 0;
  int never = 0;
  int const mine = world_rank();
  std::vector<mpi_communicator::request> requests;
  requests.push_back(comm.irecv(space_in(here), peer, phase::reduce));
  requests.push_back(comm.isend(bytes_of(mine), peer, phase::reduce));
  requests.push_back(comm.irecv(space_in(never), peer, phase::gather));
  MPI_Barrier(MPI_COMM_WORLD); // both messages are under way when the first rank begins to wait
  auto const heard = outcome_of([&] { comm.wait_all(std::span(requests)); });
  std::string const open = " has waited to receive from rank ";
  CHECK((heard.code == fault::timed_out || heard.code == fault::abandoned));
  CHECK(heard.says(open + std::to_string(heard.code == fault::timed_out ? peer : mine) +
                   " (gather) in scheme, call 12 for more than 0.1"));
  CHECK(heard.says("complete: from rank "));
  CHECK(here == peer);
  comm.cancel(std::span(requests));
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE_ON_ALL_RANKS("a rank that gives up over MPI ends the waits of the others at once, with its reason") {
  if (world_size() == 1) {
    return;
  }
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  comm.set_time_limit(std::chrono::minutes(5));
  auto const begun = std::chrono::steady_clock::now();
  if (world_rank() == 0) {
    comm.abort(oktopk::error(fault::damaged_message, "a bit fell over"));
    CHECK(outcome_of([&] { comm.isend({}, 1, phase::gather); }).code == fault::damaged_message);
  } else {
    int number = 0;
    auto never = comm.irecv(space_in(number), 0, phase::balance);
    auto const heard = outcome_of([&] { comm.wait_all(std::span(&never, 1)); });
    CHECK(unlike(heard, fault::abandoned, "rank 0 has given up: a bit fell over") == "");
    comm.cancel(std::span(&never, 1));
  }
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::minutes(1));
  MPI_Barrier(MPI_COMM_WORLD);
}
