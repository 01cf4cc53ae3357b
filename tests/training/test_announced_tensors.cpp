// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Which bucket's call is next, in whatever order tensors are announced.

#include "support/catch.hpp"

#include <oktopk/bucketed.hpp>

using oktopk::detail::announced_tensors;

namespace {

// Three buckets: tensors 0 and 1, tensor 2, tensors 3 and 4.
announced_tensors three_buckets() {
  std::vector<std::int64_t> const lengths{3, 4, 9, 5, 2};
  return announced_tensors(oktopk::detail::plan_buckets(lengths, 1, {.bucket_bytes = 8}));
}

std::string usage_error_of(announced_tensors const& step, int bucket) {
  return step.usage_error_of(bucket) ? step.usage_error_of(bucket)->what() : "";
}

std::vector<int> given_out(announced_tensors& step) {
  std::vector<int> buckets;
  while (auto const next = step.next_complete()) {
    CHECK(step.next_complete() == next);
    buckets.push_back(*next);
    step.give_out();
  }
  return buckets;
}

} // namespace

TEST_CASE("buckets are given out in their order, whatever the order of the tensors") {
  std::vector<int> order{0, 1, 2, 3, 4};
  int orders = 0;
  auto step = three_buckets();
  do {
    std::vector<int> all;
    std::vector<int> complete;
    for (int const tensor : order) {
      CHECK_FALSE(step.has(tensor));
      if (auto const bucket = step.announce(tensor)) {
        complete.push_back(*bucket);
      }
      CHECK(step.has(tensor));
      for (int const bucket : given_out(step)) {
        CHECK(std::find(complete.begin(), complete.end(), bucket) != complete.end());
        all.push_back(bucket);
      }
    }
    CHECK(all == std::vector<int>{0, 1, 2});
    CHECK(step.order() == order);
    std::sort(complete.begin(), complete.end());
    CHECK(complete == all);
    for (int const bucket : all) {
      CHECK(usage_error_of(step, bucket).empty());
    }
    step.begin_step();
    CHECK(step.order().empty());
    orders += 1;
  } while (std::next_permutation(order.begin(), order.end()));
  CHECK(orders == 120);
}
