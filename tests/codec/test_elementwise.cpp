// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codec/suite.hpp"

#include <oktopk/codec/elementwise.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::codecs;

TEST_CASE("identity loses nothing") {
  CHECK(fault_on_finite<float>(oktopk::identity()) == "");
  CHECK(fault_on_finite<double>(oktopk::identity()) == "");
  CHECK(fault_on_non_finite<float>(oktopk::identity()) == "");
  CHECK(oktopk::identity::encoded_bytes<double>(10) == 80);
}

TEST_CASE("bfloat16 keeps its bound") {
  CHECK(fault_on_finite<float>(oktopk::bfloat16(), std::numeric_limits<float>::max()) == "");
  CHECK(fault_on_finite<double>(oktopk::bfloat16(), std::numeric_limits<float>::max()) == "");
  CHECK(fault_on_non_finite<float>(oktopk::bfloat16()) == "");
  CHECK(fault_on_non_finite<double>(oktopk::bfloat16()) == "");
  CHECK(oktopk::bfloat16::encoded_bytes<double>(10) == 20);
}

TEST_CASE("float16 keeps its bound, over the largest, too") {
  CHECK(fault_on_finite<float>(oktopk::float16()) == "");
  CHECK(fault_on_finite<double>(oktopk::float16()) == "");
  CHECK(fault_on_non_finite<float>(oktopk::float16()) == "");
  CHECK(fault_on_non_finite<double>(oktopk::float16()) == "");
  CHECK(oktopk::float16::encoded_bytes<double>(10) == 20);
  trip<float> const made = travel(oktopk::float16(), std::vector<float>{65504, 65520, -1e6F});
  CHECK(made.decoded == std::vector<float>{65504, 65504, -65504});
  CHECK(made.lost == std::vector<float>{0, 16, -934496});
}
