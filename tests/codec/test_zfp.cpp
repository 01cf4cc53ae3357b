// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef OKTOPK_TESTS_WITH_ZFP

#include "codec/suite.hpp"

#include <oktopk/codec/zfp.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::codecs;

TEST_CASE("zfp keeps its bound at every rate") {
  for (int rate = 4; rate <= 16; ++rate) {
    oktopk::zfp const codec({.rate = rate});
    INFO("rate " << rate);
    CHECK(fault_on_finite<float>(codec, std::numeric_limits<float>::max()) == "");
    CHECK(fault_on_finite<double>(codec, std::numeric_limits<double>::max()) == "");
    CHECK(fault_on_non_finite<float>(codec) == "");
    CHECK(fault_on_non_finite<double>(codec) == "");
  }
}

TEST_CASE("zfp takes its rate and a word") {
  CHECK(oktopk::zfp({.rate = 8}).encoded_bytes<float>(0) == 0);
  CHECK(oktopk::zfp({.rate = 8}).encoded_bytes<float>(1) == 16);
  CHECK(oktopk::zfp({.rate = 8}).encoded_bytes<float>(1024) == 1024 + 8);
  CHECK(oktopk::zfp({.rate = 5}).encoded_bytes<double>(1024) == 1024 * 5 / 8 + 8);
}

TEST_CASE("zfp says which rates it has") {
  CHECK(oktopk::zfp().fault() == "");
  CHECK(oktopk::zfp({.rate = 3}).fault() == "rate = 3 of zfp is not between 4 and 16");
}

#endif
