// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk_bench/value_code.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

namespace {

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
