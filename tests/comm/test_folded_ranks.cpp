// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/comm/collectives.hpp>

#include <cstddef>
#include <vector>

TEST_CASE("folded ranks share out the places of the core, each to one rank or to a pair") {
  for (int ranks = 1; ranks <= 70; ++ranks) {
    std::vector<int> guests(static_cast<std::size_t>(ranks), 0);
    std::vector<int> hosts(static_cast<std::size_t>(ranks), 0);
    int core = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      oktopk::detail::folded_ranks const at(rank, ranks);
      core = at.core;
      REQUIRE((at.core & (at.core - 1)) == 0);
      REQUIRE((at.core <= ranks && 2 * at.core > ranks));
      REQUIRE(at.core + at.folded == ranks);
      REQUIRE((at.place >= 0 && at.place < at.core));
      // A guest stays with the rank before it, which is at the same place and stands for both.
      REQUIRE(at.rank_at(at.place) == (at.is_guest ? rank - 1 : rank));
      REQUIRE((at.in_pair || !at.is_guest));
      REQUIRE(at.in_pair == (at.place < at.folded));
      (at.is_guest ? guests : hosts)[static_cast<std::size_t>(at.place)] += 1;
    }
    for (int place = 0; place < core; ++place) {
      CHECK(hosts[static_cast<std::size_t>(place)] == 1);
      CHECK(guests[static_cast<std::size_t>(place)] == (place < ranks - core ? 1 : 0));
    }
  }
}
