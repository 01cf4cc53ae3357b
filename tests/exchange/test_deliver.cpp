// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "exchange/deliverer_suite.hpp"

#include <oktopk/exchange/foreseen.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

TEMPLATE_TEST_CASE("deliverers keep their contract", "", oktopk::search_and_gather<oktopk::exact>,
                   oktopk::search_and_gather<oktopk::reused_threshold>, oktopk::foreseen<>, oktopk::everything) {
  check_deliverer<TestType>();
}
