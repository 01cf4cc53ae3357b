// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/seeded.hpp"

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/value_forms.hpp>

#include <bit>

namespace {

using oktopk::detail::bits_of;
using oktopk::detail::infinity_bits;
using oktopk::detail::lowest_bit;
using oktopk::detail::magnitude_bits;
using oktopk::detail::magnitude_from_bits;
using oktopk::detail::popcount;

// Both ends of each kind of number, neighbours, and numbers drawn over all exponents; each in both signs.
template <class Value>
std::vector<Value> finite_values() {
  using limits = std::numeric_limits<Value>;
  std::vector<Value> values = {
      0,          limits::denorm_min(), 2 * limits::denorm_min(), limits::min() / 2, limits::min(), Value(1),
      Value(1.5), limits::max()};
  values.push_back(std::nextafter(limits::min(), Value(0)));
  values.push_back(std::nextafter(Value(1), Value(0)));
  values.push_back(std::nextafter(Value(1), Value(2)));
  values.push_back(std::nextafter(limits::max(), Value(0)));
  oktopk_tests::seeded draw(3);
  while (values.size() < 200) {
    auto const any = std::bit_cast<Value>(static_cast<bits_of<Value>>(draw.next()));
    if (std::isfinite(any)) {
      values.push_back(std::abs(any));
    }
  }
  std::size_t const positive = values.size();
  for (std::size_t i = 0; i < positive; ++i) {
    values.push_back(-values[i]);
  }
  return values;
}

template <class Value>
std::vector<Value> nans() {
  auto const quiet = std::bit_cast<bits_of<Value>>(std::numeric_limits<Value>::quiet_NaN());
  bits_of<Value> const lowest_payload = infinity_bits<Value> + 1;
  bits_of<Value> const all_ones = static_cast<bits_of<Value>>(~bits_of<Value>(0));
  return {std::bit_cast<Value>(quiet), -std::bit_cast<Value>(quiet), std::bit_cast<Value>(lowest_payload),
          std::bit_cast<Value>(all_ones)};
}

static_assert(sizeof(bits_of<float>) == 4 && sizeof(bits_of<double>) == 8);
static_assert(oktopk::detail::magnitude_bit_count<float> == 31 && oktopk::detail::magnitude_bit_count<double> == 63);
static_assert(magnitude_bits(-1.0F) == magnitude_bits(1.0F) && popcount(7U) == 3 && lowest_bit(8) == 3,
              "all of it works in constant expressions");

} // namespace

TEMPLATE_TEST_CASE("patterns of magnitudes are ordered as the magnitudes are", "", float, double) {
  auto const values = finite_values<TestType>();
  std::int64_t wrong = 0;
  for (TestType const a : values) {
    for (TestType const b : values) {
      wrong += (std::abs(a) < std::abs(b)) != (magnitude_bits(a) < magnitude_bits(b)) ? 1 : 0;
      wrong += (std::abs(a) == std::abs(b)) != (magnitude_bits(a) == magnitude_bits(b)) ? 1 : 0;
    }
  }
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("infinity is above all that is finite, NaN above infinity, and a pattern gives back its magnitude",
                   "", float, double) {
  TestType const infinity = std::numeric_limits<TestType>::infinity();
  CHECK(magnitude_bits(infinity) == infinity_bits<TestType>);
  CHECK(magnitude_bits(-infinity) == infinity_bits<TestType>);
  for (TestType const x : finite_values<TestType>()) {
    REQUIRE(magnitude_bits(x) < infinity_bits<TestType>);
    TestType const back = magnitude_from_bits<TestType>(magnitude_bits(x));
    REQUIRE((back == std::abs(x) && !std::signbit(back)));
  }
  for (TestType const x : nans<TestType>()) {
    CHECK(magnitude_bits(x) > infinity_bits<TestType>);
    CHECK((magnitude_bits(x) >> oktopk::detail::magnitude_bit_count<TestType>) == 0);
  }
}

TEST_CASE("popcount counts bits, and lowest_bit finds the first") {
  oktopk_tests::seeded draw(4);
  for (int round = 0; round < 2000; ++round) {
    std::uint64_t const dense = draw.next();
    std::uint64_t const sparse = dense & draw.next() & draw.next() & draw.next();
    for (std::uint64_t const x : {dense, sparse, ~sparse, dense << (round % 64), dense >> (round % 64)}) {
      REQUIRE(popcount(x) == std::popcount(x));
      if (x != 0) {
        REQUIRE(lowest_bit(x) == std::countr_zero(x));
      }
    }
  }
  CHECK((popcount(0x9e3779b9U) == std::popcount(0x9e3779b9U) && popcount(~0U) == 32));
  CHECK((popcount(std::uint64_t(0)) == 0 && popcount(~std::uint64_t(0)) == 64));
  for (int bit = 0; bit < 64; ++bit) {
    CHECK((lowest_bit(std::uint64_t(1) << bit) == bit && popcount(std::uint64_t(1) << bit) == 1));
  }
}

using bfloat16 = oktopk::detail::bfloat16_form;
using float16 = oktopk::detail::float16_form;

TEST_CASE("every bfloat16 comes back as it was, and a NaN as a NaN") {
  for (std::uint32_t half = 0; half <= 0xffff; ++half) {
    auto const bits = static_cast<std::uint16_t>(half);
    float const value = bfloat16::from_bits<float>(bits);
    std::uint16_t const again = bfloat16::to_bits(value);
    CHECK((std::isnan(value) ? std::isnan(bfloat16::from_bits<float>(again)) : again == bits));
  }
}

TEST_CASE("values between two bfloat16 go to the nearest, halves to the even one, of both signs") {
  for (float const sign : {1.0F, -1.0F}) {
    auto const rounded = [sign](float value) {
      return sign * bfloat16::from_bits<float>(bfloat16::to_bits(sign * value));
    };
    CHECK(rounded(1 + 0x1p-9F) == 1.0F);                  // nearer to 1 than to 1 + 2^-7
    CHECK(rounded(1 + 0x1p-8F) == 1.0F);                  // a half: to the even one
    CHECK(rounded(1 + 0x1p-7F + 0x1p-8F) == 1 + 0x1p-6F); // a half: to the even one, upward
    CHECK(rounded(1 + 0x1p-8F + 0x1p-20F) == 1 + 0x1p-7F);
  }
}

TEST_CASE("what is beyond the largest bfloat16 becomes infinite, and binary64 is rounded to binary32 first") {
  CHECK(std::isinf(bfloat16::from_bits<float>(bfloat16::to_bits(std::numeric_limits<float>::max()))));
  CHECK(bfloat16::to_bits(1.0 + 0x1p-8 + 0x1p-40) == bfloat16::to_bits(1.0)); // the rest is lost in binary32
}

namespace {

/// The definition, from the bits up.
double value_of_float16(std::uint32_t half) {
  auto const exponent = static_cast<int>(half >> 10 & 0x1fU);
  auto const mantissa = static_cast<double>(half & 0x3ffU);
  double const magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25); // finite ones
  return half >> 15 != 0 ? -magnitude : magnitude;
}

/// Every finite float16, and what lies a little beside the middle between it and the next, in both signs.
template <class Value>
void check_float16() {
  using limits = std::numeric_limits<Value>;
  std::uint32_t wrong = 0;
  for (std::uint32_t half = 0; half < 0x7c00; ++half) {
    for (std::uint32_t const sign : {0U, 0x8000U}) {
      auto const is = [&](Value magnitude, std::uint32_t expected) {
        wrong += float16::to_bits(sign != 0 ? -magnitude : magnitude) != (expected | sign) ? 1U : 0U;
      };
      Value const value = float16::from_bits<Value>(static_cast<std::uint16_t>(half | sign));
      wrong +=
          static_cast<double>(value) != value_of_float16(half | sign) || std::signbit(value) != (sign != 0) ? 1U : 0U;
      auto const magnitude = static_cast<Value>(value_of_float16(half));
      is(magnitude, half);
      if (half < 0x7bff) {
        Value const middle = (magnitude + static_cast<Value>(value_of_float16(half + 1))) / 2;
        is(middle, half + half % 2);
        is(std::nextafter(middle, Value(0)), half);
        is(std::nextafter(middle, limits::infinity()), half + 1);
      }
    }
  }
  CHECK(wrong == 0);
  CHECK(float16::to_bits(Value(65519)) == 0x7bff);
  CHECK(float16::to_bits(Value(65520)) == 0x7bff); // infinite where halves are rounded as IEEE 754 has it
  CHECK(float16::to_bits(limits::max()) == 0x7bff);
  CHECK(float16::to_bits(limits::lowest()) == 0xfbff);
  CHECK(float16::to_bits(limits::denorm_min()) == 0);
  CHECK(float16::to_bits(-limits::min()) == 0x8000);
  CHECK(float16::to_bits(limits::infinity()) == 0x7c00);
  CHECK(float16::to_bits(-limits::infinity()) == 0xfc00);
  CHECK(float16::from_bits<Value>(0xfc00) == -limits::infinity());
  CHECK(std::isnan(float16::from_bits<Value>(float16::to_bits(limits::quiet_NaN()))));
  CHECK(std::isnan(float16::from_bits<Value>(0x7c01)));
}

} // namespace

TEST_CASE("float16 values come back as they were, others go to the nearest, and none but infinity becomes infinite") {
  check_float16<float>();
  check_float16<double>();
  CHECK(float16::to_bits(1 + 0x1p-11 + 0x1p-40) == 0x3c01); // one rounding, not one by way of binary32
}
