// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The order in which tensors come.

#include "support/catch.hpp"

#include <oktopk/training/arrival_order.hpp>

#include <vector>

TEST_CASE("tensors stand in the order in which they first came, and those that did not behind them") {
  oktopk::detail::arrival_order order;
  for (int const tensor : {3, 1, 3, 1, 0}) {
    order.note(tensor);
  }
  CHECK(order.take({4, 3, 2, 1, 0}) == std::vector<int>{3, 1, 0, 4, 2});
  CHECK(order.take({1, 0}) == std::vector<int>{1, 0}); // nothing is left of the step before
}
