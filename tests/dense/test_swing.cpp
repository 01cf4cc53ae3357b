// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "dense/suite.hpp"

#include <oktopk/dense/rabenseifner.hpp>

#include <cstdlib>

using namespace oktopk_tests;
using namespace oktopk_tests::dense;
using pairs = oktopk::detail::swing_pairs;

namespace {

/// The sets of blocks are formed from the pairs alone, as the paper has it: what a place reaches in later steps.
std::vector<int> reached(int place, int step, int steps) {
  if (step == steps) {
    return {place};
  }
  std::vector<int> all = reached(place, step + 1, steps);
  for (int const each : reached(pairs::peer(place, step, steps), step + 1, steps)) {
    all.push_back(each);
  }
  return all;
}

struct plain_swing {
  template <class Comm, class Value>
  using algorithm = oktopk::swing<execution, Comm, Value>;

  static sent expected(int rank, int ranks, std::int64_t count) {
    sent all;
    each_halving_message(rank, ranks, count, 1, pairs::keeps_lower, all);
    return all;
  }
};

} // namespace

TEST_CASE("swing reduces, in the messages and values it says") {
  check_lossless<plain_swing>();
}

TEST_CASE("swing meets the ranks of the paper") {
  int const expected[] = {1, -1, 3, -5, 11, -21}; // (1 - (-2)^(s+1)) / 3
  constexpr int steps = 6;
  constexpr int places = 1 << steps;
  for (int step = 0; step < steps; ++step) {
    for (int place = 0; place < places; ++place) {
      int const way = place % 2 == 0 ? expected[step] : -expected[step];
      CHECK(pairs::peer(place, step, steps) == (place + way + places) % places);
      CHECK(std::abs(way) <= (places + 2) / 3);
    }
  }
}

TEST_CASE("swing cuts the vector so that what a rank keeps in a step is what it reaches later") {
  for (int steps = 1; steps <= 7; ++steps) {
    int const places = 1 << steps;
    std::vector<int> block_of(static_cast<std::size_t>(places)); // where a place's own block lies
    for (int place = 0; place < places; ++place) {
      int block = 0;
      for (int step = 0; step < steps; ++step) {
        block = 2 * block + (pairs::keeps_lower(place, step, steps) ? 0 : 1);
      }
      block_of[static_cast<std::size_t>(place)] = block;
    }
    std::vector<int> sorted = block_of;
    std::sort(sorted.begin(), sorted.end());
    for (int block = 0; block < places; ++block) {
      REQUIRE(sorted[static_cast<std::size_t>(block)] == block);
    }
    for (int place = 0; place < places; ++place) {
      for (int step = 0; step <= steps; ++step) {
        int const width = places >> step;
        int const begin = block_of[static_cast<std::size_t>(place)] / width;
        for (int const each : reached(place, step, steps)) {
          REQUIRE(block_of[static_cast<std::size_t>(each)] / width == begin);
        }
      }
    }
  }
}
