// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "select/magnitude_mask_cases.hpp"
#include "support/catch.hpp"

TEMPLATE_TEST_CASE("masks have a bit for each value that reaches", "", float, double) {
  CHECK(oktopk_tests::wrong_masks<TestType>() == 0);
}

TEMPLATE_TEST_CASE("accumulators and their masks are the same with all instructions", "", float, double) {
  CHECK(oktopk_tests::wrong_accumulators<TestType>() == 0);
}
