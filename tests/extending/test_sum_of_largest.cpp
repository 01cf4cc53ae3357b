// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The algorithm that docs/extending.md shows passes the suite.

#include "algorithm/suite.hpp"
#include "extending/sum_of_largest.hpp"
#include "fuzz/subject_of.hpp"
#include "support/catch.hpp"

using namespace oktopk_tests;

TEST_CASE("sum_of_largest passes the suite of algorithms") {
  auto const of =
      oktopk_fuzz::typed_subject<sum_of_largest<execution, oktopk::any_communicator>>("sum_of_largest of the page");
  for (int const ranks : {1, 2, 5, 8}) {
    CHECK(algorithm_fault(of, ranks) == "");
  }
  CHECK(continuation_fault(of, 3, {120, 12, 6}) == "");
  CHECK(damaged_state_fault(of) == "");
  CHECK(overflow_fault(of, 3, {90, 9, 1}) == "");
}
