// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Messages between ranks of one process, beyond the contract, which test_contract.cpp checks.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/messages.hpp"

#include <oktopk/comm/in_process.hpp>

#include <array>
#include <set>
#include <string_view>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::phase;

namespace {

using request = in_process_communicator::request;

} // namespace

TEST_CASE("a receive may offer more room than the message needs, and learns its size") {
  std::vector<std::byte> space(100, std::byte(0xee));
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    std::vector<std::byte> const sent(60, std::byte(0x11));
    request one = comm.rank() == 0 ? comm.isend(sent, 1, phase::reduce) : comm.irecv(space, 0, phase::reduce);
    CHECK(one.active());
    CHECK(one.receives() == (comm.rank() == 1));
    CHECK(one.message_phase() == phase::reduce);
    comm.wait_all(std::span(&one, 1));
    CHECK_FALSE(one.active());
    if (comm.rank() == 1) {
      CHECK(one.bytes() == 60);
    }
  });
  CHECK(space[59] == std::byte(0x11));
  CHECK(space[60] == std::byte(0xee));
}

TEST_CASE("every phase has a name of its own") {
  std::set<std::string_view> names;
  for (int p = 0; p < oktopk::phase_count; ++p) {
    names.insert(oktopk::name(static_cast<phase>(p)));
  }
  CHECK(names.size() == static_cast<std::size_t>(oktopk::phase_count));
  CHECK(oktopk::name(phase::control) == "control");
  CHECK(oktopk::name(phase::gather) == "gather");
  CHECK(static_cast<int>(phase::gather) == oktopk::phase_count - 1);
}

TEST_CASE("a message longer than its room is an error that says so, and the sender goes on") {
  std::array<std::byte, 12> space{};
  outcome heard;
  int after = 0;
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    std::array<std::byte, 20> const sent{};
    if (comm.rank() == 0) {
      request one = comm.isend(sent, 1, phase::reduce);
      comm.wait_all(std::span(&one, 1));
      send_number(comm, 5, 1, phase::reduce);
    } else {
      request one = comm.irecv(std::span(space).first(8), 0, phase::reduce);
      heard = outcome_of([&] { comm.wait_all(std::span(&one, 1)); });
      CHECK_FALSE(one.active());
      after = receive_number<int>(comm, 0, phase::reduce);
    }
  });
  CHECK(unlike(heard, fault::communication, "20 bytes from rank 0 exceed the 8 bytes") == "");
  CHECK(space[8] == std::byte(0));
  CHECK(after == 5);
}

TEST_CASE_ON(comm, 3, "a rank has no peer outside the world, and is none of its own") {
  if (comm.rank() == 1) {
    int number = 0;
    for (int const peer : {-1, 1, 3}) {
      auto const sending = outcome_of([&] { comm.isend(bytes_of(number), peer, phase::control); });
      CHECK(unlike(sending, fault::communication, "rank 1 has no peer " + std::to_string(peer)) == "");
      CHECK(outcome_of([&] { comm.irecv(space_in(number), peer, phase::control); }) == sending);
    }
  }
}

TEST_CASE("64 ranks pass a number around a ring and talk across it") {
  constexpr int ranks = 64;
  std::vector<int> gone_around(ranks);
  std::vector<int> across(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto const me = static_cast<std::size_t>(comm.rank());
    gone_around[me] = comm.rank();
    for (int step = 0; step < ranks; ++step) {
      gone_around[me] = pass_around(comm, gone_around[me] + 1);
    }
    int const opposite = (comm.rank() + ranks / 2) % ranks;
    std::array<request, 2> both = {comm.irecv(space_in(across[me]), opposite, phase::gather),
                                   comm.isend(bytes_of(gone_around[me]), opposite, phase::gather)};
    comm.wait_all(both);
  });
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(gone_around[static_cast<std::size_t>(rank)] == rank + ranks);
    CHECK(across[static_cast<std::size_t>(rank)] == (rank + ranks / 2) % ranks + ranks);
  }
}

TEST_CASE("a rank may run a world of its own") {
  std::vector<int> sums(3);
  oktopk::in_process::run(3, [&](in_process_communicator outer) {
    int const mine = pass_around(outer, outer.rank());
    oktopk::in_process::run(2, [&](in_process_communicator inner) {
      sums[static_cast<std::size_t>(outer.rank())] += 10 * mine + pass_around(inner, inner.rank());
    });
    pass_around(outer, 0);
  });
  CHECK(sums == std::vector<int>{41, 1, 21});
}

TEST_CASE("a world needs a rank") {
  for (int const ranks : {0, -1}) {
    auto const heard = outcome_of([&] { oktopk::in_process::run(ranks, [](in_process_communicator) {}); });
    CHECK(heard.code == fault::option_out_of_range);
  }
}
