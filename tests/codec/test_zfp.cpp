// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef OKTOPK_TESTS_WITH_ZFP

#include "codec/suite.hpp"

#include <oktopk/codec/zfp.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::codecs;

namespace {

/// As good as normal: the sum of twelve uniform numbers.
double normal(std::uint64_t which) {
  double sum = -6;
  for (std::uint64_t i = 0; i < 12; ++i) {
    sum += fraction(noise(which, i));
  }
  return sum;
}

/// Of the norm of normal values, that of what is lost of them.
template <class Value>
double relative_error(oktopk::zfp const& codec) {
  std::vector<Value> values(6400);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<Value>(0.01 * normal(i));
  }
  auto const got = travel(codec, values);
  double error = 0;
  double all = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(got.decoded[i]) - static_cast<double>(values[i]), 2);
    all += std::pow(static_cast<double>(values[i]), 2);
  }
  return std::sqrt(error / all);
}

} // namespace

TEST_CASE("zfp keeps its bound at every rate, and is off by little where values are like those of gradients") {
  for (int rate = 4; rate <= 16; ++rate) {
    oktopk::zfp const codec({.rate = rate});
    check_codec(codec, std::numeric_limits<float>::max(), std::numeric_limits<double>::max());
    INFO("rate " << rate);
    CHECK(relative_error<float>(codec) < 5 * std::pow(2, -rate));
    CHECK(relative_error<double>(codec) < 5 * std::pow(2, -rate));
  }
}

TEST_CASE("zfp takes its rate and a word") {
  CHECK(oktopk::zfp({.rate = 8}).encoded_bytes<float>(0) == 0);
  CHECK(oktopk::zfp({.rate = 8}).encoded_bytes<float>(1) == 8 + 64);
  CHECK(oktopk::zfp({.rate = 8}).encoded_bytes<float>(1024) == 1024 + 8);
  CHECK(oktopk::zfp({.rate = 5}).encoded_bytes<double>(1024) == 1024 * 5 / 8 + 8);
}

TEST_CASE("zfp says which rates it has") {
  CHECK(oktopk::zfp().problem() == "");
  CHECK(oktopk::zfp({.rate = 3}).problem() == "rate = 3 of zfp is not between 4 and 16");
}

#endif
