// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What goes wrong inside MPI is an error of the library, not the end of the program.

#include "support/caught.hpp"
#include "support/messages.hpp"
#include "support/mpi_ranks.hpp"

#include <oktopk/mpi.hpp>

#include <array>
#include <optional>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::mpi_communicator;
using oktopk::phase;

namespace {

using request = mpi_communicator::request;

// Open MPI does not tell a rank that sends itself too much; the library never does.
bool alone() {
  return world_size() == 1;
}

// Destroyed when the program ends, long after MPI_Finalize: MPI would abort it if it were told to free anything then.
std::optional<mpi_communicator> outlives_mpi;

} // namespace

TEST_CASE("a message longer than its room is an error, of which the other ranks hear, and no byte beyond is written") {
  errors_return_everywhere const live_on;
  bool const arrives_first = GENERATE(false, true);
  if (alone()) {
    return;
  }
  on_all_ranks([&] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    std::array<std::byte, 20> const sent{};
    std::array<std::byte, 12> space{};
    space.fill(std::byte(7));
    bool const sends = world_rank() == world_size() - 1;
    request message;
    auto const receive = [&] {
      if (world_rank() == 0) {
        message = comm.irecv(std::span(space).first(8), previous_rank(), phase::reduce);
      }
    };
    if (!arrives_first) {
      receive();
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (sends) {
      request send = comm.isend(sent, 0, phase::reduce);
      comm.wait_all(std::span(&send, 1));
    }
    if (arrives_first) {
      MPI_Barrier(MPI_COMM_WORLD);
      receive();
    }
    if (world_rank() == 0) {
      auto const heard = outcome_of([&] { comm.wait_all(std::span(&message, 1)); });
      CHECK(unlike(heard, fault::communication, "MPI_Wait") == "");
      CHECK(space[8] == std::byte(7));
      CHECK_FALSE(message.active()); // it must not be waited for again
    } else {
      message = comm.irecv(std::span(space).first(8), 0, phase::gather); // nobody sends it
      auto const heard = outcome_of([&] { comm.wait_all(std::span(&message, 1)); });
      CHECK(unlike(heard, fault::abandoned, "rank 0") == "");
      CHECK(heard.says("MPI_Wait"));
      comm.cancel(std::span(&message, 1));
    }
    auto const later = outcome_of([&] { pass_around(comm, world_rank(), phase::reduce); });
    CHECK(later.says("cannot be used any more"));
    CHECK(later.says("MPI_Wait"));
  });
}

TEST_CASE("of several messages one that is too long is an error, and the others can still be waited for") {
  errors_return_everywhere const live_on;
  if (alone()) {
    return;
  }
  on_all_ranks([] {
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    comm.set_time_limit({}); // then ranks do not hear of each other's errors
    std::array<std::byte, 20> sent{};
    sent.fill(std::byte(1));
    std::array<std::byte, 20> space{};
    std::array<std::byte, 8> small_space{};
    std::array<request, 4> all = {
        comm.irecv(space, previous_rank(), phase::reduce), comm.irecv(small_space, previous_rank(), phase::gather),
        comm.isend(sent, next_rank(), phase::reduce), comm.isend(sent, next_rank(), phase::gather)};
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(outcome_of([&] { comm.wait_all(all); }).code == fault::communication);
    CHECK_FALSE(all[1].active());
    comm.wait_all(all); // MPI may or may not have gone on behind the error
    for (request const& each : all) {
      CHECK_FALSE(each.active());
    }
    CHECK(all[0].bytes() == 20);
    CHECK(space == sent);
    CHECK(outcome_of([&] { pass_around(comm, world_rank(), phase::gather); }).says("cannot be used any more"));
  });
}

TEST_CASE_ON_ALL_RANKS("a peer that is no rank is an error") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  int number = 0;
  auto const sending = outcome_of([&] { comm.isend(bytes_of(number), world_size(), phase::control); });
  CHECK(unlike(sending, fault::communication, "MPI_Isend") == "");
  auto const receiving = outcome_of([&] { comm.irecv(space_in(number), world_size(), phase::control); });
  CHECK(unlike(receiving, fault::communication, "MPI_Irecv") == "");
  CHECK(pass_around(comm, world_rank()) == previous_rank());
}

TEST_CASE_ON_ALL_RANKS("a communicator may outlive MPI") {
  outlives_mpi = mpi_communicator::duplicate(MPI_COMM_WORLD);
  CHECK(pass_around(*outlives_mpi, world_rank()) == previous_rank());
}
