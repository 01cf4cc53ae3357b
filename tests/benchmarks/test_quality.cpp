// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/quality.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

using oktopk_bench::update_quality;

update_quality of(std::vector<double> const& sum, std::vector<std::int64_t> const& indices,
                  std::vector<float> const& values, std::int64_t k) {
  return oktopk_bench::quality_of(sum, indices, values, k);
}

// |S|^2 = 25 + 4 + 4 + 16 = 49.
std::vector<double> const sum{5, -2, 2, -4};

} // namespace

TEST_CASE("the true top k has no distance from itself") {
  auto const found = of(sum, {0, 3}, {5, -4}, 2);
  CHECK(found.xi == 0);
  CHECK(found.captured == Approx(41.0 / 49));
  CHECK(found.captured_by_top_k == Approx(41.0 / 49));
}

TEST_CASE("entries beyond k count for what is captured, not for xi") {
  auto const found = of(sum, {0, 1, 2, 3}, {5, -2, 2, -4}, 2);
  CHECK(found.xi == 0);
  CHECK(found.captured == 1);
  CHECK(found.captured_by_top_k == Approx(41.0 / 49));
}

TEST_CASE("a wrong choice and a partial sum are distances") {
  // Index 3 is missing (16), index 2 there instead (4), index 0 a part only (4 of 25).
  auto const found = of(sum, {0, 2}, {3, 2}, 2);
  CHECK(found.xi == Approx(std::sqrt((4.0 + 4 + 16) / 49)));
  CHECK(found.captured == Approx(1 - (4.0 + 4 + 16) / 49));
}

TEST_CASE("ties of the top k go to the lower index") {
  CHECK(of(sum, {0, 1, 3}, {5, -2, -4}, 3).xi == 0);
  CHECK(of(sum, {0, 2, 3}, {5, 2, -4}, 3).xi == Approx(std::sqrt(8.0 / 49)));
  CHECK(of({1, 1, 1}, {0, 1, 2}, {1, 1, 1}, 2).xi == 0);
}

TEST_CASE("an update may be worse than none") {
  CHECK(of({1, 0}, {0}, {-1}, 1).captured == -3);
}

TEST_CASE("nothing to select, or nothing to capture") {
  auto const nothing_selected = of(sum, {}, {}, 0);
  CHECK(nothing_selected.xi == 0);
  CHECK(nothing_selected.captured == 0);
  auto const nothing_there = of({0, 0}, {1}, {0}, 1);
  CHECK(nothing_there.xi == 0);
  CHECK(nothing_there.captured == 1);
  CHECK(of({0, 0}, {1}, {2}, 1).captured == -std::numeric_limits<double>::infinity());
  CHECK(of({}, {}, {}, 0).captured == 1);
}
