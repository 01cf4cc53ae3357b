// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Norms of vectors of any magnitude: a power of 2 times the vector has that power times the norm, to the bit.

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/training/norm.hpp>

using namespace oktopk_tests;
using oktopk::detail::wide_number;

namespace {

template <class Value>
wide_number norm_of(std::vector<Value> const& values) {
  oktopk::detail::norm_in_order<execution, Value> norm;
  auto const first = norm.of(execution(), to_view(values));
  auto const again = norm.of(execution(), to_view(values)); // with what is left in the buffers
  CHECK(first.exponent == again.exponent);
  CHECK((first.value == again.value || std::isnan(first.value)));
  return first;
}

/// Values of 10 binary digits, between 2^(exponent - 10) and 2^exponent, of either sign.
template <class Value>
std::vector<Value> values_at(int exponent) {
  std::vector<Value> values(3000); // several blocks
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const digits = static_cast<double>(1 + (i * 7919) % 1023);
    values[i] = static_cast<Value>(std::ldexp(i % 2 == 0 ? digits : -digits, exponent - 10));
  }
  return values;
}

} // namespace

TEMPLATE_TEST_CASE("norms from denormal values to the largest ones", "", float, double) {
  using limits = std::numeric_limits<TestType>;
  auto const expected = norm_of(values_at<TestType>(0));
  long double squares = 0;
  for (TestType const value : values_at<TestType>(0)) {
    squares += static_cast<long double>(value) * value;
  }
  CHECK(static_cast<double>(expected) == Approx(static_cast<double>(std::sqrt(squares))).epsilon(1e-14));
  int const least = limits::min_exponent - limits::digits + 10; // the last digit is the smallest number
  for (int exponent = least; exponent <= limits::max_exponent; ++exponent) {
    auto const found = norm_of(values_at<TestType>(exponent));
    if (found.value != expected.value || found.exponent != expected.exponent + exponent) {
      FAIL_CHECK("exponent " << exponent << ": " << found.value << " * 2^" << found.exponent << " instead of "
                             << expected.value << " * 2^" << expected.exponent + exponent);
    }
  }
}

TEST_CASE("large and small values together have the norm of the large ones") {
  CHECK(static_cast<double>(norm_of<double>({1e-300, 3e200, 4e200, 5e-324})) == Approx(5e200).epsilon(1e-14));
  CHECK(static_cast<double>(norm_of<double>({0, 1, 1e-200})) == 1);
}

TEST_CASE("norms of no values, of zeros, and of values that are not finite") {
  double const infinity = std::numeric_limits<double>::infinity();
  CHECK(static_cast<double>(norm_of<double>({})) == 0);
  CHECK(static_cast<double>(norm_of<double>({0, -0.0})) == 0);
  CHECK(static_cast<double>(norm_of<float>({0, 0, 0})) == 0);
  CHECK(static_cast<double>(norm_of<double>({1e300, -infinity})) == infinity);
  CHECK(std::isnan(static_cast<double>(norm_of<double>({1, std::nan("")}))));
  CHECK(std::isnan(static_cast<double>(norm_of<double>({1e300, std::nan(""), infinity}))));
}

TEST_CASE("the factor to a norm is 1 below it, and is known where a double is too narrow for it") {
  oktopk::detail::norm_in_order<execution, double> norm;
  auto const factor = [&](std::vector<double> const& values, double most) {
    return norm.factor_to(execution(), to_view(values), most);
  };
  CHECK(static_cast<double>(factor({3, 4}, 5)) == 1);
  CHECK(static_cast<double>(factor({3, 4}, 6)) == 1);
  CHECK(static_cast<double>(factor({3, 4}, 0)) == 1);
  CHECK(static_cast<double>(factor({3, 4}, 2.5)) == 0.5);
  CHECK(static_cast<double>(factor({0, 0}, 1)) == 1);
  CHECK(static_cast<double>(factor({1, std::nan("")}, 0.5)) == 1);
  auto const tiny = factor({std::ldexp(1.0, 1023)}, std::ldexp(1.0, -1074));
  CHECK(tiny.value == 0.5);
  CHECK(tiny.exponent == -2096);
  CHECK(tiny.underflows<double>());
  CHECK(static_cast<double>(hypot(wide_number::of(3), wide_number::of(-4))) == 5);
  CHECK(static_cast<double>(hypot(wide_number::of(4e200), wide_number::of(3e200))) == Approx(5e200));
  for (double const one : {0.0, 0.1, 1e-300, 1e300}) {
    CHECK(static_cast<double>(hypot(wide_number::of(one), wide_number())) == one);
    CHECK(static_cast<double>(hypot(wide_number(), wide_number::of(one))) == one);
  }
  CHECK(hypot(wide_number::of(1e300), wide_number::of(HUGE_VAL)).value == HUGE_VAL);
  CHECK(wide_number::of(1e-40).underflows<float>());
  CHECK(!wide_number::of(1e-40).underflows<double>());
  CHECK(!wide_number::of(0).underflows<float>());
}
