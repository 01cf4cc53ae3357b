// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/quality.hpp>
#include <oktopk_bench/reference.hpp>
#include <oktopk_bench/value_code.hpp>

#include "support/catch.hpp"

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

// |S|^2 = 25 + 4 + 4 + 16 = 49.
std::vector<double> const dense{5, -2, 2, -4};

using oktopk_bench::coded_value;
using oktopk_bench::value_code;

std::vector<coded_value> coded(std::string const& code, std::vector<float> const& message) {
  std::vector<coded_value> result;
  value_code(code).code(message, result);
  return result;
}

/// The values, where none is in doubt.
std::vector<double> certain(std::string const& code, std::vector<float> const& message) {
  std::vector<double> values;
  for (coded_value const& each : coded(code, message)) {
    CHECK(each.doubt == 0);
    values.push_back(each.value);
  }
  return values;
}

bool may_give(std::string const& code, std::vector<float> const& message) {
  return value_code(code).may_give(message);
}

using doubles = std::vector<double>;

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

TEST_CASE("an update is as far from the true top k as the squares of what is missing, wrong or a part") {
  struct update {
    char const* what;
    std::vector<double> sum;
    std::vector<std::int64_t> indices;
    std::vector<float> values;
    std::int64_t k;
    double missed;   // of the energy: the square of xi
    double captured; // of the energy
  };
  double const nothing = -std::numeric_limits<double>::infinity();
  for (update const& each : std::vector<update>{
           {"the true top k", dense, {0, 3}, {5, -4}, 2, 0, 41.0 / 49},
           {"entries beyond k count for what is captured alone", dense, {0, 1, 2, 3}, {5, -2, 2, -4}, 2, 0, 1},
           {"index 3 is missing, 2 there instead, 0 a part", dense, {0, 2}, {3, 2}, 2, 24.0 / 49, 25.0 / 49},
           {"ties go to the lower index", dense, {0, 1, 3}, {5, -2, -4}, 3, 0, 45.0 / 49},
           {"and not to the higher", dense, {0, 2, 3}, {5, 2, -4}, 3, 8.0 / 49, 45.0 / 49},
           {"all alike", {1, 1, 1}, {0, 1, 2}, {1, 1, 1}, 2, 0, 1},
           {"worse than none", {1, 0}, {0}, {-1}, 1, 4, -3},
           {"nothing selected", dense, {}, {}, 0, 0, 0},
           {"nothing there", {0, 0}, {1}, {0}, 1, 0, 1},
           {"something where nothing is", {0, 0}, {1}, {2}, 1, -nothing, nothing},
           {"no entries", {}, {}, {}, 0, 0, 1}}) {
    INFO(each.what);
    auto const found = oktopk_bench::quality_of(each.sum, each.indices, each.values, each.k);
    CHECK(found.xi == Approx(std::sqrt(each.missed)));
    CHECK(found.captured == Approx(each.captured));
    CHECK((each.sum != dense || each.k != 2 || found.captured_by_top_k == Approx(41.0 / 49)));
  }
}

TEST_CASE("bfloat16 rounds to 8 significant bits, ties to even, and no further than its largest value") {
  CHECK(certain("bfloat16", {0x1.01p0F, -0x1.03p0F, 0x1.0101p0F, 0}) == doubles{1, -0x1.04p0, 0x1.02p0, 0});
  CHECK(certain("bfloat16", {-std::numeric_limits<float>::max()}) == doubles{-0x1.fep127});
}

TEST_CASE("fixed8 and fixed4 round to multiples of a scale") {
  CHECK(certain("fixed4", {7, 3.4F, -0.4F, -0.6F}) == doubles{7, 3, 0, -1});
  // 7.01 / 7 is rounded up to the next scale, 1 + 2^-7.
  CHECK(certain("fixed4", {-7.01F, 3}) == doubles{-7 * 0x1.02p0, 3 * 0x1.02p0});
  CHECK(certain("fixed8", {254, -3.2F, 0.9F}) == doubles{254, -4, 0});
  CHECK(certain("fixed8", {0, 0}) == doubles{0, 0});
}

TEST_CASE("what lies halfway between two levels is in doubt") {
  auto const tie = coded("fixed8", {127, 2.5F, 2.4999F});
  CHECK((tie[1].value == 3 && tie[1].doubt == 1));
  CHECK((tie[2].value == 2 && tie[2].doubt == 0));
}

TEST_CASE("fixed2 and sign have the means of magnitudes") {
  CHECK(certain("fixed2", {1, -1.5F, 9, -11}) == doubles{1.25, -1.25, 10, -10});
  CHECK(certain("sign", {1, -3}) == doubles{2, -2});
  // 1 + 2^-7 / 4 is nearer to 1 than to the next scale.
  CHECK(certain("sign", {1, 1 + 0x1p-8F}) == doubles{1, 1});
  auto const tie = coded("sign", {1 + 0x1p-8F});
  CHECK(tie[0].doubt == 0x1p-7);
}

TEST_CASE("every 256 values have a scale of their own") {
  std::vector<float> message(256, 1);
  message.push_back(-5);
  for (std::string const code : {"sign", "fixed2"}) {
    auto const values = certain(code, message);
    CHECK((values[0] == 1 && values[255] == 1 && values[256] == -5));
    CHECK(may_give(code, message));
  }
  message[255] = 2;
  CHECK((!may_give("sign", message) && may_give("fixed2", message)));
  message[254] = 3;
  CHECK_FALSE(may_give("fixed2", message));
}

TEST_CASE("values are told from those that no message decodes to") {
  CHECK((may_give("bfloat16", {1, -0x1.02p0F}) && !may_give("bfloat16", {1, 0x1.01p0F})));
  CHECK((may_give("fixed4", {7, -3, 0}) && may_give("fixed4", {6, -3}) && !may_give("fixed4", {7, 3.5F})));
  CHECK((may_give("fixed8", {126, 1}) && !may_give("fixed8", {125, 1}) && may_give("fixed8", {0})));
  CHECK((may_give("sign", {2, -2}) && !may_give("sign", {0x1.01p0F}) && may_give("sign", {})));
}

TEST_CASE("only codes that round are known") {
  for (std::string const code : {"bfloat16", "fixed8", "fixed4", "fixed2", "sign"}) {
    CHECK(value_code(code).known());
    CHECK(value_code(code).each_alone() == (code == "bfloat16"));
  }
  CHECK((!value_code("exact").known() && !value_code("").known() && !value_code("fixed6").known()));
}
