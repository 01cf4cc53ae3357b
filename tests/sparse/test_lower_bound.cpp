// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/sparse/arithmetic.hpp>

TEMPLATE_TEST_CASE("lower_bound finds what std::lower_bound finds", "", std::int32_t, std::int64_t) {
  for (std::int64_t size = 0; size < 40; ++size) {
    std::vector<TestType> sorted;
    for (std::int64_t i = 0; i < size; ++i) {
      sorted.push_back(static_cast<TestType>(i * i / 3 - 5));
    }
    for (std::int64_t value = -8; value < 600; ++value) {
      auto const expected = std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin();
      REQUIRE(oktopk::detail::lower_bound(sorted.data(), size, value) == expected);
    }
  }
  std::vector<TestType> const few{0, 1};
  CHECK(oktopk::detail::lower_bound(few.data(), 2, std::int64_t(1) << 40) == 2);
  CHECK(oktopk::detail::lower_bound(few.data(), 2, -(std::int64_t(1) << 40)) == 0);
}
