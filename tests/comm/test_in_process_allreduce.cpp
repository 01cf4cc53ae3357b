// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The in-process communicator's own allreduce: the yardstick of `dense`.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/messages.hpp"
#include "support/ranks.hpp"
#include "support/reduced.hpp"
#include "support/seeded.hpp"

#include <oktopk/comm/in_process.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::phase;
using oktopk::reduction;

namespace {

template <class T>
std::vector<T> numbers_of(int rank, std::size_t count) {
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
      auto const expected = reduced(ranks, op, [](int rank) { return numbers_of<TestType>(rank, count); });
      oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
        auto mine = numbers_of<TestType>(comm.rank(), count);
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
  std::vector<outcome> heard(ranks);
  std::vector<float> sums(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto const me = static_cast<std::size_t>(comm.rank());
    std::vector<float> mine(comm.rank() == 2 ? 3 : 4, 1);
    heard[me] = outcome_of([&] { comm.allreduce(std::span<float>(mine), reduction::sum, phase::reduce); });
    CHECK(mine == std::vector<float>(mine.size(), 1));
    sums[me] = 1;
    comm.allreduce(std::span<float>(&sums[me], 1), reduction::sum, phase::reduce);
  });
  for (outcome const& each : heard) {
    CHECK(each.code == fault::communication);
    CHECK(each == heard[0]);
    CHECK(each.says("different lengths"));
  }
  CHECK(sums == std::vector<float>(ranks, 4));
}
