// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The algorithm that docs/extending.md shows passes the suite.

#include "algorithm/suite.hpp"
#include "extending/sum_of_largest.hpp"

using namespace oktopk_tests;

namespace {

struct subject : subject_of<> {
  template <class Comm>
  using algorithm = sum_of_largest<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }
};

} // namespace

TEST_CASE("sum_of_largest passes the suite of algorithms") {
  check_algorithm<subject>();
}
