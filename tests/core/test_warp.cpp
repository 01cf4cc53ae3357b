// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/seeded.hpp"
#include "support/warps.hpp"

#include <oktopk/core/kokkos_ext/warp.hpp>

#include <bit>
#include <numeric>

// Every function of a warp, in each form of it that this execution space has, against a loop on the host.
using namespace oktopk_tests;
using oktopk::detail::lane_mask;

namespace {

/// What the lanes of one warp give for their values.
template <class Warp>
struct warp_functions {
  std::int64_t const* values;
  std::int64_t* mask;     // of the odd ones
  std::int64_t* ranks;    // of each lane among these
  std::int64_t* sums;     // before each lane, and of all
  std::int64_t* lanes;    // each lane's number
  std::int64_t* once;     // how often, and what one lane tells all
  std::int32_t* narrower; // sums of 32 bits

  KOKKOS_INLINE_FUNCTION void operator()(oktopk::detail::team_of<execution> const& team) const {
    auto const warp = oktopk::detail::warp_in<Warp>(team);
    if (oktopk::detail::warp_number<Warp>(team) != 0) {
      return;
    }
    warp.each([&](int lane) { lanes[lane] += lane; });
    auto const odd = warp.ballot([&](int lane) { return values[lane] % 2 != 0; });
    warp.once([&] {
      *mask = static_cast<std::int64_t>(odd);
      once[0] += 1;
    });
    warp.each([&](int lane) { ranks[lane] = oktopk::detail::rank_in<Warp::lanes>(odd, lane); });
    typename Warp::template per_lane<std::int64_t> wide;
    typename Warp::template per_lane<std::int32_t> narrow;
    warp.each([&](int lane) {
      wide[lane] = values[lane];
      narrow[lane] = static_cast<std::int32_t>(values[lane] % 1000);
    });
    std::int64_t const all = warp.exclusive_scan(wide);
    std::int32_t const all_narrow = warp.exclusive_scan(narrow);
    warp.each([&](int lane) {
      sums[lane] = wide[lane];
      narrower[lane] = narrow[lane];
    });
    warp.once([&] {
      sums[Warp::lanes] = all;
      narrower[Warp::lanes] = all_narrow;
      once[1] = 77;
    });
    warp.sync();
    std::int64_t const value = warp.broadcast([&] { return once[1] + 1; });
    warp.each([&](int lane) { lanes[lane] += value; });
  }
};

/// Sums over a team's threads, and the last of several teams.
template <class Warp>
struct team_functions {
  std::int64_t* numbers; // of all teams
  std::int64_t size;
  std::int64_t* arrived;
  std::int64_t* last; // how many teams are the last, what it saw of the others, and the sum

  KOKKOS_INLINE_FUNCTION void operator()(oktopk::detail::team_of<execution> const& team) const {
    std::int64_t const share = size / team.league_size();
    for (std::int64_t i = team.team_rank(); i < share; i += team.team_size()) {
      numbers[team.league_rank() * share + i] += 1;
    }
    if (oktopk::detail::is_last_team(team, arrived)) {
      auto* const scratch = oktopk::detail::shared_in<std::int64_t>(team, oktopk::detail::numbers_to_scan<Warp>);
      std::int64_t const sum = oktopk::detail::exclusive_scan<Warp>(team, numbers, size, scratch);
      if (team.team_rank() == 0) {
        last[0] += 1;
        last[1] = sum;
      }
    }
  }
};

} // namespace

TEMPLATE_LIST_TEST_CASE("a warp's lanes vote, rank, add up and tell each other", "", warps) {
  constexpr int lanes = TestType::lanes;
  constexpr auto size = static_cast<std::size_t>(lanes);
  seeded draw(11);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::int64_t> values(size);
    for (auto& value : values) {
      std::int64_t const wide = std::int64_t(1) << (round % 45);
      value = static_cast<std::int64_t>(draw.next() % static_cast<std::uint64_t>(wide + 1)) + (round == 1 ? 1 : 0);
    }
    auto const in = to_view(values);
    auto const numbers = to_view(std::vector<std::int64_t>(4 * size + 8, 0));
    auto const narrow = to_view(std::vector<std::int32_t>(size + 1, 0));
    std::int64_t* const at = numbers.data();
    oktopk::detail::for_teams<TestType>("oktopk::tests::warp", execution(), 1, 0,
                                        warp_functions<TestType>{in.data(), at, at + 1, at + 1 + lanes,
                                                                 at + 2 + 2 * lanes, at + 2 + 3 * lanes,
                                                                 narrow.data()});
    auto const out = to_vector(numbers);
    auto const out_narrow = to_vector(narrow);
    std::uint64_t mask = 0;
    std::int64_t sum = 0;
    std::int32_t sum_narrow = 0;
    for (std::size_t lane = 0; lane < size; ++lane) {
      REQUIRE(out[1 + lane] == std::popcount(mask));
      REQUIRE(out[1 + size + lane] == sum);
      REQUIRE(out_narrow[lane] == sum_narrow);
      REQUIRE(out[2 + 2 * size + lane] == static_cast<std::int64_t>(lane) + 78);
      mask |= values[lane] % 2 != 0 ? std::uint64_t(1) << lane : 0;
      sum += values[lane];
      sum_narrow += static_cast<std::int32_t>(values[lane] % 1000);
    }
    CHECK(static_cast<std::uint64_t>(out[0]) == mask);
    CHECK(out[1 + 2 * size] == sum);
    CHECK(out_narrow[size] == sum_narrow);
    CHECK(out[2 + 3 * size] == 1);
  }
}

TEMPLATE_LIST_TEST_CASE("one team is the last, and sees what all have written", "", warps) {
  for (std::int64_t const teams : {1, 2, 7, 33}) {
    for (std::int64_t const share : {1, 3, 300, 1025}) {
      std::int64_t const size = teams * share;
      auto const numbers = to_view(std::vector<std::int64_t>(static_cast<std::size_t>(size), 2));
      auto const results = to_view(std::vector<std::int64_t>(3, 0));
      team_functions<TestType> const kernel{numbers.data(), size, results.data(), results.data() + 1};
      oktopk::detail::for_teams<TestType>("oktopk::tests::teams", execution(), teams, 1024, kernel);
      auto const first = to_vector(results);
      CHECK(first == std::vector<std::int64_t>{0, 1, 3 * size});
      auto const before = to_vector(numbers);
      bool ascends = true;
      for (std::size_t i = 0; i < before.size(); ++i) {
        ascends = ascends && before[i] == 3 * static_cast<std::int64_t>(i);
      }
      CHECK(ascends);
    }
  }
}

TEST_CASE("masks of lanes") {
  CHECK(oktopk::detail::rank_in<32>(~std::uint32_t(0), 0) == 0);
  CHECK(oktopk::detail::rank_in<32>(~std::uint32_t(0), 31) == 31);
  CHECK(oktopk::detail::rank_in<64>(~std::uint64_t(0), 63) == 63);
  CHECK(oktopk::detail::rank_in<32>(0x80000001U, 31) == 1);
  STATIC_REQUIRE(sizeof(lane_mask<32>) == 4);
  STATIC_REQUIRE(sizeof(lane_mask<64>) == 8);
}
