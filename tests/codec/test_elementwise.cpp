// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codec/suite.hpp"

#include <oktopk/codec/elementwise.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::codecs;

TEST_CASE("identity, bfloat16 and float16 keep their bounds") {
  constexpr double most = std::numeric_limits<float>::max();
  check_codec(oktopk::identity());
  check_codec(oktopk::bfloat16(), most, most);
  check_codec(oktopk::float16());
  CHECK(oktopk::identity::encoded_bytes<double>(10) == 80);
  CHECK(oktopk::bfloat16::encoded_bytes<double>(10) == 20);
  CHECK(oktopk::float16::encoded_bytes<double>(10) == 20);
}

TEST_CASE("float16 keeps its bound over the largest, too") {
  trip<float> const made = travel(oktopk::float16(), std::vector<float>{65504, 65520, -1e6F});
  CHECK(made.decoded == std::vector<float>{65504, 65504, -65504});
  CHECK(made.lost == std::vector<float>{0, 16, -934496});
}
