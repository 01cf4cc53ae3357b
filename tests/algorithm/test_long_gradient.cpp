// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"
#include "support/reference.hpp"

#include <oktopk/catalogue/catalogue.hpp>

#include <map>

// Beyond 2^24 a float no longer counts by ones: an index that had gone through one would come out wrong.
using namespace oktopk_tests;

namespace {

constexpr std::int64_t long_length = (std::int64_t(1) << 24) + 37;

/// Large values at places all over, and at each of the last ones; all else is nearly zero.
std::vector<std::int64_t> places(int rank) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t i = 0; i < 20; ++i) {
    chosen.push_back(long_length - 1 - 2 * i - rank % 2);
  }
  for (std::uint64_t i = 0; i < 20; ++i) {
    chosen.push_back(number_in(0, long_length - 100, noise(3, i)));
  }
  return chosen;
}

float value_at(int rank, std::int64_t place) {
  return static_cast<float>(
      1000 + number_in(0, 4000, noise(5, static_cast<std::uint64_t>(rank), static_cast<std::uint64_t>(place))));
}

void check(int ranks, char const* text) {
  std::map<std::int64_t, float> sums;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::int64_t const place : places(rank)) {
      sums[place] += value_at(rank, place);
    }
  }
  sparse_vector<float> expected;
  for (auto const& [place, sum] : sums) {
    expected.push_back(place, sum);
  }
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    auto allreduce = oktopk::make_allreduce(execution(), comm, text, {.length = long_length, .k = 60});
    std::vector<float> accumulator(static_cast<std::size_t>(long_length), 0);
    for (std::int64_t const place : places(comm.rank())) {
      accumulator[static_cast<std::size_t>(place)] = value_at(comm.rank(), place);
    }
    Kokkos::View<float const*, memory> const input = to_view(accumulator);
    for (int call = 0; call < 2; ++call) {
      auto const& update = allreduce(input);
      auto const indices = to_vector(update.indices());
      auto const values = to_vector(update.values());
      sparse_vector<float> sum;
      for (std::size_t i = 0; i < indices.size(); ++i) {
        if (values[i] != 0) {
          sum.push_back(indices[i], values[i]);
        }
      }
      CHECK((sum == expected));
      CHECK(update.contributed().extent(0) >= 40);
    }
  });
}

} // namespace

TEST_CASE("indices beyond 2^24 survive in ok_topk") {
  for (int const ranks : {2, 3}) {
    check(ranks, "ok_topk");
  }
}

TEST_CASE("indices beyond 2^24 survive in dense") {
  check(2, "dense");
}
