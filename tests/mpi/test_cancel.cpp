// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Messages that are given up under MPI.

#include "comm/suite.hpp"
#include "support/failing.hpp"
#include "support/kept_update.hpp"
#include "support/mpi_ranks.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/mpi.hpp>

#include <array>
#include <new>
#include <stdexcept>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::mpi_communicator;
using oktopk::phase;

namespace {

using request = mpi_communicator::request;

// Takes what has been sent and never received, for MPICH complains of it in the end.
void take_leftovers(MPI_Comm comm) {
  MPI_Barrier(MPI_COMM_WORLD);
  std::array<std::byte, 65536> space{};
  for (int attempt = 0; attempt < 1000; ++attempt) {
    int found = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status);
    if (found != 0) {
      MPI_Recv(space.data(), static_cast<int>(space.size()), MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm,
               MPI_STATUS_IGNORE);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

} // namespace

TEST_CASE_ON_ALL_RANKS("receives that an exception ends take no message that comes later") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  // One that MPI would copy, one that it would fetch.
  constexpr std::size_t few = 100;
  constexpr std::size_t many = std::size_t(1) << 20;
  std::vector<std::byte> spaces(few + many, std::byte(7));
  auto freed = std::make_unique<std::vector<std::byte>>(few);
  std::vector<request> receives;
  try {
    oktopk::detail::cancel_on_unwind const guard(comm, receives);
    receives.push_back(comm.irecv(std::span(spaces).first(few), previous_rank(), phase::reduce));
    receives.push_back(comm.irecv(std::span(spaces).subspan(few), previous_rank(), phase::gather));
    receives.push_back(comm.irecv(*freed, previous_rank(), phase::balance));
    throw std::runtime_error("in between");
  } catch (std::runtime_error const&) {
    freed.reset();
  }
  for (request const& each : receives) {
    CHECK_FALSE(each.active());
  }
  communicating::check_left(comm, next_rank(), previous_rank());
  MPI_Barrier(MPI_COMM_WORLD);
  // The peer knows nothing of it, and sends: by MPI, for it may not use its own copy either.
  std::vector<std::byte> const sent(many, std::byte(1));
  std::array<MPI_Request, 3> late{};
  auto const send = [&](std::size_t which, std::size_t bytes, phase use) {
    MPI_Isend(sent.data(), static_cast<int>(bytes), MPI_BYTE, next_rank(), static_cast<int>(use), comm.carrier(),
              &late[which]);
  };
  send(0, few, phase::reduce);
  send(1, many, phase::gather);
  send(2, few, phase::balance);
  MPI_Barrier(MPI_COMM_WORLD);
  auto fresh = mpi_communicator::duplicate(MPI_COMM_WORLD);
  CHECK(pass_around(fresh, world_rank(), phase::reduce) == previous_rank()); // and MPI has seen to what has come
  CHECK(std::count(spaces.begin(), spaces.end(), std::byte(7)) == static_cast<std::ptrdiff_t>(spaces.size()));
  // So that no send is left: they arrive elsewhere.
  std::vector<std::byte> elsewhere(many);
  for (auto const use : {phase::reduce, phase::gather, phase::balance}) {
    MPI_Recv(elsewhere.data(), static_cast<int>(many), MPI_BYTE, previous_rank(), static_cast<int>(use), comm.carrier(),
             MPI_STATUS_IGNORE);
    CHECK(elsewhere[few - 1] == std::byte(1));
  }
  MPI_Waitall(3, late.data(), MPI_STATUSES_IGNORE);
}

TEST_CASE_ON_ALL_RANKS("a message that has come before its receive is cancelled does no harm") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  int space = 0;
  int const number = 5;
  request receive = comm.irecv(space_in(space), previous_rank(), phase::reduce);
  request send = comm.isend(bytes_of(number), next_rank(), phase::reduce);
  comm.wait_all(std::span(&send, 1));
  MPI_Barrier(MPI_COMM_WORLD);
  comm.cancel(std::span(&receive, 1));
  CHECK_FALSE(receive.active());
  CHECK((space == 0 || space == 5));
  int const was = space;
  auto fresh = mpi_communicator::duplicate(MPI_COMM_WORLD);
  CHECK(pass_around(fresh, world_rank()) == previous_rank());
  CHECK(space == was);
}

TEST_CASE_ON_ALL_RANKS("sends that nobody takes are given up after a second in all, and others are unharmed") {
  using clock = std::chrono::steady_clock;
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  std::vector<std::byte> const many(std::size_t(1) << 22, std::byte(3)); // too many to be sent ahead
  std::vector<request> sends;
  auto const begin = clock::now();
  try {
    request single;
    oktopk::detail::cancel_on_unwind const guard(comm, single, sends);
    single = comm.isend(many, next_rank(), phase::reduce);
    sends.push_back(comm.isend(many, next_rank(), phase::gather));
    throw std::runtime_error("in between");
  } catch (std::runtime_error const&) {
  }
  double const seconds = std::chrono::duration<double>(clock::now() - begin).count();
  CHECK(seconds < 10); // on a busy machine
  CHECK_FALSE(sends[0].active());
  communicating::check_left(comm, next_rank(), previous_rank());
  auto fresh = mpi_communicator::duplicate(MPI_COMM_WORLD);
  CHECK(pass_around(fresh, world_rank()) == previous_rank());
  // What was left to MPI can still be fetched, and the test leaves nothing under way.
  std::vector<std::byte> space(many.size());
  for (auto const use : {phase::reduce, phase::gather}) {
    MPI_Recv(space.data(), static_cast<int>(space.size()), MPI_BYTE, previous_rank(), static_cast<int>(use),
             comm.carrier(), MPI_STATUS_IGNORE);
    CHECK(space == many);
    std::fill(space.begin(), space.end(), std::byte(0));
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE_ON_ALL_RANKS("no message is needed to leave a collective: copies are told, other duplicates go on") {
  auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
  auto copy = comm;
  auto another = mpi_communicator::duplicate(comm.carrier());
  comm.cancel({});
  communicating::check_left(comm, next_rank(), previous_rank());
  communicating::check_left(copy, next_rank(), previous_rank());
  CHECK(pass_around(another, world_rank()) == previous_rank());
}

TEST_CASE("a message that was never received does not reach a later duplicate") {
  if (world_size() == 1) { // a rank that sends itself may have to receive before the send ends
    return;
  }
  on_all_ranks([] {
    int const stale = -1;
    MPI_Comm left = MPI_COMM_NULL;
    {
      auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
      request send = comm.isend(bytes_of(stale), next_rank(), phase::reduce);
      comm.wait_all(std::span(&send, 1));
      MPI_Barrier(MPI_COMM_WORLD);
      comm.cancel({});
      left = comm.carrier();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    auto fresh = mpi_communicator::duplicate(MPI_COMM_WORLD);
    CHECK(pass_around(fresh, world_rank(), phase::reduce) == previous_rank());
    take_leftovers(left);
  });
}

TEST_CASE_ON_ALL_RANKS(
    "whichever encoding fails on all ranks, the call leaves no message behind, and another duplicate goes on") {
  using algorithm = oktopk::ok_topk<host_execution, mpi_communicator, oktopk::with_format<exhausted_coo>>;
  auto const length = std::int64_t(1000);
  auto const accumulator = seeded_accumulator<float>(length, world_rank(), 0);
  auto const call = [&](mpi_communicator comm) {
    algorithm allreduce(host_execution(), comm, {.length = length, .k = 100});
    return keep_update(allreduce(accumulator));
  };
  kept_update const expected = call(mpi_communicator::duplicate(MPI_COMM_WORLD));
  for (std::int64_t which = 1; which <= world_size(); ++which) { // what is for each peer, and what is gathered
    auto comm = mpi_communicator::duplicate(MPI_COMM_WORLD);
    exhausted_coo::encodings = 0;
    exhausted_coo::last = which;
    try { // whether this rank has its own failure first or hears of another's
      call(comm);
      FAIL_CHECK("nothing was thrown");
    } catch (std::bad_alloc const&) {
    } catch (oktopk::error const& heard) {
      CHECK(heard.code() == fault::abandoned);
    }
    exhausted_coo::last = std::numeric_limits<std::int64_t>::max();
    CHECK(outcome_of([&] { call(comm); }).says(world_size() > 1 ? "cannot be used any more" : ""));
    MPI_Barrier(MPI_COMM_WORLD);
    kept_update const found = call(mpi_communicator::duplicate(MPI_COMM_WORLD));
    CHECK(difference(found, expected) == "");
    take_leftovers(comm.carrier());
  }
}
