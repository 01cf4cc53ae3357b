// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Values of 16 bits become the nearest, ties to even, and infinite beyond the largest, as torch has it.

#include "engine/value_buffer.hpp"
#include "support/catch.hpp"

#include <random>

namespace {

using oktopk::detail::element;
using oktopk::detail::value_buffer;

oktopk::detail::engine_space exec() {
  return {};
}

bool are_finite(value_buffer const& values) {
  oktopk::detail::shared_numbers<std::int32_t, oktopk::detail::engine_space> found("found");
  return oktopk::detail::are_finite(exec(), values, found);
}

/// The value of a pattern with so many bits of mantissa behind the exponent.
double value_of(std::uint16_t pattern, int mantissa_bits) {
  int const bias = (1 << (14 - mantissa_bits)) - 1;
  int const exponent = (pattern & 0x7fff) >> mantissa_bits;
  int const mantissa = pattern & ((1 << mantissa_bits) - 1);
  double const hidden = exponent == 0 ? 0 : 1;
  double const magnitude = std::ldexp(hidden + std::ldexp(mantissa, -mantissa_bits), std::max(exponent, 1) - bias);
  return (pattern & 0x8000) != 0 ? -magnitude : magnitude;
}

/// The nearest by search over the patterns of positive values; that of infinity counts as the next power of two.
std::uint16_t nearest(double value, int mantissa_bits, std::uint16_t infinity) {
  std::uint16_t low = 0;
  std::uint16_t high = infinity;
  double const magnitude = std::abs(value);
  while (high - low > 1) {
    auto const middle = static_cast<std::uint16_t>((low + high) / 2);
    (value_of(middle, mantissa_bits) <= magnitude ? low : high) = middle;
  }
  double const below = magnitude - value_of(low, mantissa_bits);
  double const above = value_of(high, mantissa_bits) - magnitude;
  bool const goes_up = above < below || (above == below && low % 2 == 1);
  return static_cast<std::uint16_t>((goes_up ? high : low) | (std::signbit(value) ? 0x8000 : 0));
}

struct form {
  element type;
  int mantissa_bits;
  std::uint16_t infinity;
};

} // namespace

TEST_CASE("values of 16 bits are read exactly, and written as the nearest") {
  auto const of = GENERATE(form{element::float16, 10, 0x7c00}, form{element::bfloat16, 7, 0x7f80});
  std::vector<std::uint16_t> patterns;
  for (int pattern = 0; pattern < of.infinity; ++pattern) {
    patterns.push_back(static_cast<std::uint16_t>(pattern));
    patterns.push_back(static_cast<std::uint16_t>(pattern | 0x8000));
  }
  value_buffer const buffer{patterns.data(), std::ssize(patterns), of.type};
  std::vector<double> wide(patterns.size());
  oktopk::detail::widen(exec(), buffer, wide.data());
  std::vector<float> values;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    REQUIRE(wide[i] == value_of(patterns[i], of.mantissa_bits));
    auto const value = static_cast<float>(wide[i]);
    for (float const each : {value, std::nextafter(value, 1e38F), value * 1.00048828125F, value * 1.00390625F}) {
      values.push_back(each);
    }
  }
  values.insert(values.end(), {65504, 65519.996F, 65520, -65520, 1e30F, 3.39e38F, 3e38F, 5.9604645e-8F, 2.9802322e-8F});
  std::mt19937 draw(7);
  std::uniform_real_distribution<float> magnitude(-30, 20);
  for (int i = 0; i < 20000; ++i) {
    values.push_back(std::exp2(magnitude(draw)) * (i % 2 == 0 ? 1 : -1));
  }
  std::erase_if(values, [](float each) { return !std::isfinite(each); });
  std::vector<std::uint16_t> narrowed(values.size());
  oktopk::detail::narrow(exec(), std::as_const(values).data(), {narrowed.data(), std::ssize(narrowed), of.type});
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    bool const is_right = narrowed[i] == nearest(static_cast<double>(values[i]), of.mantissa_bits, of.infinity);
    if (!is_right && ++wrong == 1) {
      CAPTURE(values[i], narrowed[i]);
      CHECK(is_right);
    }
  }
  CHECK(wrong == 0);
  std::vector<double> const too_large{1e300, -1e300};
  narrowed.resize(2);
  oktopk::detail::narrow(exec(), too_large.data(), {narrowed.data(), 2, of.type});
  CHECK((narrowed[0] == of.infinity && narrowed[1] == (of.infinity | 0x8000)));
  CHECK_FALSE(are_finite({narrowed.data(), 2, of.type}));
  oktopk::detail::fill(exec(), {narrowed.data(), 2, of.type}, 0);
  CHECK(are_finite({narrowed.data(), 2, of.type}));
}
