// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "codec/suite.hpp"

#include <oktopk/codec/block_float.hpp>

using namespace oktopk_tests;
using namespace oktopk_tests::codecs;
using oktopk::block_float;

TEST_CASE("block_float keeps its bound at every rate, and takes the rate and 16 bits for 64 values") {
  for (int rate = 4; rate <= 16; ++rate) {
    block_float const codec({.rate = rate});
    check_codec(codec);
    CHECK(codec.encoded_bytes<float>(64 * 8) == 64 * rate + 16);
    CHECK(codec.encoded_bytes<double>(64 * 8) == 64 * rate + 16);
    CHECK(codec.encoded_bytes<float>(0) == 0);
    CHECK(codec.encoded_bytes<float>(1) == 8 + rate);
    CHECK(codec.encoded_bytes<float>(65) == 8 + 9 * rate);
  }
}

TEST_CASE("block_float is exact where all values are few steps of a power of two") {
  std::vector<float> values(64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(number_in(-127, 127, noise(5, i))) * 0x1p-30F;
  }
  auto const made = travel(block_float(), values);
  CHECK(made.decoded == values);
  CHECK(made.lost == std::vector<float>(64, 0.0F));
}

TEST_CASE("block_float spoils only the block that has a value that is not finite") {
  std::vector<float> values(192, 1.0F);
  values[70] = std::numeric_limits<float>::infinity();
  auto const made = travel(block_float(), values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    CHECK(std::isnan(made.decoded[i]) == (i / 64 == 1));
  }
}

TEST_CASE("block_float rounds to nearest: half a step is the most that it is off, and ties go to even") {
  std::vector<float> values{64, 0.5F, 1.5F, -2.5F, 63.25F}; // a step is 1
  values.resize(64);
  auto made = travel(block_float(), values);
  made.decoded.resize(5);
  CHECK(made.decoded == std::vector<float>{64, 0, 2, -2, 63});
}

TEST_CASE("block_float says which rates it has") {
  CHECK(block_float().problem() == "");
  CHECK(block_float({.rate = 3}).problem() == "rate = 3 of block_float is not between 4 and 16");
  CHECK(block_float({.rate = 17}).problem() == "rate = 17 of block_float is not between 4 and 16");
  CHECK(block_float({.rate = 9}).name() == "block_float 9");
}
