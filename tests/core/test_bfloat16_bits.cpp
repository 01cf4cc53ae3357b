// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/core/bfloat16_bits.hpp>

#include <cmath>
#include <cstdint>
#include <limits>

using oktopk::detail::bfloat16_bits;
using oktopk::detail::from_bfloat16_bits;

TEST_CASE("every bfloat16 comes back as it was, and a NaN as a NaN") {
  for (std::uint32_t half = 0; half <= 0xffff; ++half) {
    auto const bits = static_cast<std::uint16_t>(half);
    float const value = from_bfloat16_bits<float>(bits);
    std::uint16_t const again = bfloat16_bits(value);
    CHECK((std::isnan(value) ? std::isnan(from_bfloat16_bits<float>(again)) : again == bits));
  }
}

TEST_CASE("values between two bfloat16 go to the nearest, halves to the even one, of both signs") {
  for (float const sign : {1.0F, -1.0F}) {
    auto const rounded = [sign](float value) { return sign * from_bfloat16_bits<float>(bfloat16_bits(sign * value)); };
    CHECK(rounded(1 + 0x1p-9F) == 1.0F);                  // nearer to 1 than to 1 + 2^-7
    CHECK(rounded(1 + 0x1p-8F) == 1.0F);                  // a half: to the even one
    CHECK(rounded(1 + 0x1p-7F + 0x1p-8F) == 1 + 0x1p-6F); // a half: to the even one, upward
    CHECK(rounded(1 + 0x1p-8F + 0x1p-20F) == 1 + 0x1p-7F);
  }
}

TEST_CASE("what is beyond the largest bfloat16 becomes infinite, and binary64 is rounded to binary32 first") {
  CHECK(std::isinf(from_bfloat16_bits<float>(bfloat16_bits(std::numeric_limits<float>::max()))));
  CHECK(bfloat16_bits(1.0 + 0x1p-8 + 0x1p-40) == bfloat16_bits(1.0)); // the rest is lost in binary32
}
