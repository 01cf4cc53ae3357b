// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Messages between ranks of one process, beyond the contract, which test_contract.cpp checks.

#include "comm/testing.hpp"
#include "support/seeded.hpp"

#include <set>

using namespace oktopk_tests;

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

// The communicator's own allreduce: the yardstick of `dense`.
namespace {

template <class T>
std::vector<T> fractions(int rank, std::size_t count) {
  seeded draw(static_cast<std::uint64_t>(rank) + 17);
  std::vector<T> numbers(count);
  for (T& x : numbers) {
    x = static_cast<T>(draw.uniform() - 0.5);
  }
  return numbers;
}

} // namespace

TEMPLATE_TEST_CASE("an allreduce gives sums in rank order, minima and maxima, the same bits everywhere", "", float,
                   double) {
  constexpr std::size_t count = 37;
  for (int const ranks : rank_counts) {
    for (reduction const op : {reduction::sum, reduction::min, reduction::max}) {
      auto const expected = reduced(ranks, op, [](int rank) { return fractions<TestType>(rank, count); });
      oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
        auto mine = fractions<TestType>(comm.rank(), count);
        comm.allreduce(std::span<TestType>(mine), op, phase::reduce);
        CHECK(mine == expected);
      });
    }
  }
}

TEST_CASE("allreduces follow each other, of any length, with messages in between") {
  constexpr int ranks = 5;
  oktopk::in_process::run(ranks, [](in_process_communicator comm) {
    for (std::size_t round = 0; round < 20; ++round) {
      std::vector<double> mine(round % 4, comm.rank() + static_cast<double>(round));
      comm.allreduce(std::span<double>(mine), reduction::sum, phase::reduce);
      if (round % 3 == 1) {
        // Some ranks run ahead into the next allreduce before the others have left this one.
        REQUIRE(pass_around(comm, comm.rank()) == (comm.rank() + ranks - 1) % ranks);
      }
      REQUIRE(mine == std::vector<double>(round % 4, 10 + 5 * static_cast<double>(round)));
    }
  });
}

TEST_CASE("an allreduce of different lengths is an error on every rank, and the next one works") {
  constexpr int ranks = 4;
  std::vector<float> sums(ranks, 1);
  auto const heard = outcomes_of(ranks, [&](in_process_communicator comm) {
    std::vector<float> mine(comm.rank() == 2 ? 3 : 4, 1);
    auto const told = outcome_of([&] { comm.allreduce(std::span<float>(mine), reduction::sum, phase::reduce); });
    CHECK(mine == std::vector<float>(mine.size(), 1));
    comm.allreduce(std::span(&sums[static_cast<std::size_t>(comm.rank())], 1), reduction::sum, phase::reduce);
    throw oktopk::error(told.code, told.text);
  });
  CHECK(unlike(heard[0], fault::communication, "different lengths") == "");
  CHECK(heard == std::vector<outcome>(ranks, heard[0]));
  CHECK(sums == std::vector<float>(ranks, 4));
}
