// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/dense/wire.hpp>

TEST_CASE("a vector is cut into pieces that follow each other, of whole grains, as even as these allow") {
  for (std::int64_t const block_size : {1, 4, 64}) {
    for (std::int64_t const pieces : {1, 2, 7, 16, 60}) {
      for (std::int64_t const count : {0, 1, 3, 63, 64, 65, 959, 960, 961, 10007}) {
        INFO(count << " values in " << pieces << " pieces of grain " << block_size);
        oktopk::detail::cut_vector const vector(count, pieces, block_size);
        std::int64_t end = 0;
        std::int64_t longest = 0;
        std::int64_t shortest = count;
        for (std::int64_t i = 0; i < pieces; ++i) {
          auto const p = vector[i];
          REQUIRE((p.index == i && p.begin == end && p.count >= 0));
          end += p.count;
          REQUIRE((end == count || end % block_size == 0));
          longest = std::max(longest, p.count);
          shortest = end < count ? std::min(shortest, p.count) : shortest;
        }
        REQUIRE(end == count);
        REQUIRE(longest <= vector.longest());
        REQUIRE(vector.longest() <= count);
        REQUIRE(longest - shortest <= block_size);
      }
    }
  }
}
