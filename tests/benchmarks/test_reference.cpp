// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/reference.hpp>

#include "support/catch.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using oktopk_bench::block_sums;
using oktopk_bench::contribution;
using oktopk_bench::result_check;
using positions = std::vector<std::int64_t>;

block_sums sums_of(std::int64_t width, std::vector<contribution> const& parts, bool rounded = false) {
  block_sums sums(width, rounded);
  sums.add(parts);
  return sums;
}

} // namespace

TEST_CASE("top_k of the reference gives ties to the lower position") {
  std::vector<float> const values{1, -3, 2, 3, 0, -0.0F, 2};
  CHECK(oktopk_bench::top_k(values, 0) == positions{});
  CHECK(oktopk_bench::top_k(values, 1) == positions{1});
  CHECK(oktopk_bench::top_k(values, 2) == positions{1, 3});
  CHECK(oktopk_bench::top_k(values, 3) == positions{1, 2, 3});
  CHECK(oktopk_bench::top_k(values, 6) == positions{0, 1, 2, 3, 4, 6});
  CHECK(oktopk_bench::top_k(values, 7) == positions{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("one or two contributions add up as single precision does, and leave no tolerance") {
  auto const sums = sums_of(3, {{0, 0.1F}, {1, 0.1F}, {1, 0.2F}});
  CHECK(sums.sum(0) == static_cast<double>(0.1F));
  CHECK(sums.sum(1) == static_cast<double>(0.1F + 0.2F));
  CHECK(sums.tolerance(0) == 0);
  CHECK(sums.tolerance(1) == 0);
  CHECK(sums.touched(1));
  CHECK_FALSE(sums.touched(2));
}

TEST_CASE("the tolerance covers every order of three contributions") {
  float const a = 1e8F;
  float const b = -1e8F;
  float const c = 0.3F;
  auto const sums = sums_of(1, {{0, a}, {0, b}, {0, c}});
  for (float const sum : {(a + b) + c, (a + c) + b, (b + c) + a}) {
    CHECK(std::abs(static_cast<double>(sum) - sums.sum(0)) <= sums.tolerance(0));
  }
  CHECK(sums.tolerance(0) < 30);
}

TEST_CASE("result_check leaves near-ties alone and nothing else") {
  // Three contributions to entries 0 and 1, whose sums differ by less than they may be rounded.
  float const next = 0x1.000002p0F;
  std::vector<contribution> const parts{{0, 1}, {0, 1}, {0, 1}, {1, next}, {1, 1}, {1, 1}, {2, 2}, {3, 2}};
  auto const sums = sums_of(4, parts);
  auto const choice = [&](positions const& indices, std::vector<float> const& values) {
    result_check check(indices, values);
    check.take(0, 4, sums);
    CHECK(check.wrong_value().empty());
    CHECK(check.candidates() == 4);
    return check.wrong_choice();
  };
  CHECK(choice({0}, {3}).empty());
  CHECK(choice({1}, {3}).empty());
  CHECK(choice({2}, {2}).find("is missing") != std::string::npos);
  // An exact tie goes to the lower index.
  CHECK(choice({0, 1, 2}, {3, 3, 2}).empty());
  CHECK(choice({0, 1, 3}, {3, 3, 2}).find("index 2") != std::string::npos);
}

TEST_CASE("result_check chooses by the sums that reach their owners, as far as these are certain") {
  auto const choice = [](std::vector<contribution> const& parts) {
    auto const sums = sums_of(2, parts, true);
    positions const indices{0};
    std::vector<float> const values{4};
    result_check check(indices, values);
    check.take(0, 2, sums);
    CHECK(check.wrong_value().empty());
    return check.wrong_choice();
  };
  auto const kept = contribution::reached;
  // Given were 4 and 5, of which 4 and 3 reached the owner.
  CHECK(choice({{0, 4}, {0, 4, kept}, {1, 5}, {1, 3, kept}}).empty());
  // Given were 4 and 3, of which 4 and 5 did.
  std::vector<contribution> parts{{0, 4}, {0, 4, kept}, {1, 3}, {1, 5, kept}};
  CHECK(choice(parts).find("index 1 (magnitude 5) is missing from the result, which has index 0") == 0);
  parts.push_back({1, 2, contribution::doubt});
  CHECK(choice(parts).empty());
}

TEST_CASE("what is returned counts against what is given") {
  auto const sums = sums_of(2, {{0, 4}, {0, 1, contribution::returned}, {1, 1, contribution::returned}});
  CHECK((sums.sum(0) == 3 && sums.touched(0) && sums.took_back(0)));
  CHECK((sums.sum(1) == -1 && !sums.touched(1) && sums.took_back(1)));
}
