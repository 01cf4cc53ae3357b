// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// One block of block floating point: its codes, their bytes, and what rounding takes.

#include "support/catch.hpp"
#include "support/seeded.hpp"

#include <oktopk/codec/block_float.hpp>

#include <array>

using namespace oktopk_tests;

namespace {

template <class Value>
using any_rate = oktopk::detail::block_coder<Value, 0>;

constexpr int width = any_rate<float>::width;

template <class Value>
std::array<Value, width> block_of(std::uint64_t seed, Value scale) {
  seeded draw(seed);
  std::array<Value, width> values{};
  for (Value& each : values) {
    each = static_cast<Value>((draw.next() % 2 == 0 ? 1 : -1) * std::pow(draw.uniform(), 6)) * scale;
  }
  return values;
}

template <class Value, class Coder>
std::array<Value, width> decoded(std::int16_t exponent, typename Coder::code const* codes, int count = width) {
  std::array<Value, width> values;
  values.fill(77);
  Coder::decode(oktopk::detail::replace(), exponent, codes, count, values.data());
  return values;
}

// Encodes with the rate as an argument and with it in the type: codes agree in the bits that are packed.
template <class Value, int Rate>
void check_fixed_rate(std::array<Value, width> const& values) {
  using fixed = oktopk::detail::block_coder<Value, Rate>;
  std::array<typename fixed::code, width> codes{};
  std::array<typename any_rate<Value>::code, width> others{};
  auto const exponent = fixed::encode(values.data(), codes.data(), nullptr, Rate);
  CHECK(exponent == any_rate<Value>::encode(values.data(), others.data(), nullptr, Rate));
  std::vector<std::byte> packed(8 * Rate);
  std::vector<std::byte> packed_others(8 * Rate);
  fixed::pack(codes.data(), 8, Rate, packed.data());
  any_rate<Value>::pack(others.data(), 8, Rate, packed_others.data());
  CHECK(packed == packed_others);
  std::array<typename fixed::code, width> back{};
  fixed::unpack(packed.data(), 8, Rate, back.data());
  CHECK((decoded<Value, fixed>(exponent, back.data()) == decoded<Value, any_rate<Value>>(exponent, others.data())));
}

} // namespace

TEMPLATE_TEST_CASE("powers of two are exact, also subnormal ones", "", float, double) {
  using limits = std::numeric_limits<TestType>;
  for (int exponent = limits::min_exponent - limits::digits; exponent < limits::max_exponent; ++exponent) {
    CHECK(oktopk::detail::power_of_two<TestType>(exponent) == std::ldexp(TestType(1), exponent));
  }
}

TEST_CASE("codes of any rate survive their bytes, and stay within them") {
  seeded draw(5);
  for (int rate = 2; rate <= 16; ++rate) {
    CAPTURE(rate);
    std::array<std::int16_t, width> codes{};
    for (auto& each : codes) {
      each = static_cast<std::int16_t>(static_cast<int>(draw.below(std::int64_t(1) << rate)) - (1 << (rate - 1)));
    }
    codes[0] = static_cast<std::int16_t>((1 << (rate - 1)) - 1);
    codes[1] = static_cast<std::int16_t>(-(1 << (rate - 1)));
    for (int const groups : {1, 3, 8}) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(groups * rate) + 1, std::byte(0x5a));
      any_rate<float>::pack(codes.data(), groups, rate, bytes.data());
      CHECK(bytes.back() == std::byte(0x5a));
      std::array<std::int16_t, width> back{};
      any_rate<float>::unpack(bytes.data(), groups, rate, back.data());
      for (int i = 0; i < width; ++i) {
        CHECK(back[static_cast<std::size_t>(i)] == (i < 8 * groups ? codes[static_cast<std::size_t>(i)] : 0));
      }
    }
  }
}

TEST_CASE("a block with a value that is not finite, or with a damaged exponent, decodes to nothing finite") {
  for (float const bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN()}) {
    auto values = block_of<float>(2, 1.0F);
    values[63] = bad;
    std::array<std::int16_t, width> codes{};
    auto const exponent = any_rate<float>::encode(values.data(), codes.data(), nullptr, 8);
    CHECK(exponent == any_rate<float>::not_finite);
    for (float const each : decoded<float, any_rate<float>>(exponent, codes.data())) {
      CHECK(std::isnan(each));
    }
  }
  std::array<std::int16_t, width> ones{};
  ones.fill(1);
  auto const first_with = [&](int exponent) {
    return decoded<float, any_rate<float>>(static_cast<std::int16_t>(exponent), ones.data())[0];
  };
  for (int const damaged : {128, 1000, 32767, -150, -1000, -32768}) {
    CHECK(std::isnan(first_with(damaged)));
  }
  for (int const sound : {0, 127, -149}) {
    CHECK(first_with(sound) == std::ldexp(1.0F, sound));
  }
}

TEST_CASE("a part of a block is decoded and no more") {
  auto const values = block_of<float>(3, 1.0F);
  std::array<std::int16_t, width> codes{};
  auto const exponent = any_rate<float>::encode(values.data(), codes.data(), nullptr, 12);
  auto const whole = decoded<float, any_rate<float>>(exponent, codes.data());
  for (int const count : {0, 1, 63, 64}) {
    auto const part = decoded<float, any_rate<float>>(exponent, codes.data(), count);
    for (int i = 0; i < width; ++i) {
      auto const at = static_cast<std::size_t>(i);
      CHECK(part[at] == (i < count ? whole[at] : 77.0F));
    }
  }
}

TEMPLATE_TEST_CASE("a rate in the type gives the bytes of the same rate as an argument", "", float, double) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto const values = block_of<TestType>(seed, TestType(seed % 2 == 0 ? 1e-3 : 1e3));
    check_fixed_rate<TestType, 8>(values);
    check_fixed_rate<TestType, 16>(values);
  }
}
