// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The format that docs/extending.md shows passes the suite.

#include "format/suite.hpp"

#include "extending/pairs.hpp"

using namespace oktopk_tests;

TEMPLATE_TEST_CASE("pairs is a format", "", (pairs<float, std::int32_t>), (pairs<double, std::int64_t>)) {
  for (std::int64_t const count : {0, 1, 2, 3, 7, 100}) {
    round_trip<TestType>(count, {123457, 123457 + 101});
  }
  check_bound_grows<TestType>({0, 1000}, 100);
  check_bound_of_cuts<TestType>();
}
