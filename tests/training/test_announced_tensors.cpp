// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Which bucket's call is next, in whatever order tensors are announced, and what becomes of a usage error.

#include "support/catch.hpp"

#include <oktopk/bucketed.hpp>

#include <optional>

using oktopk::fault;
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

TEST_CASE("a tensor that is none, or comes twice, spoils a bucket that was not given out") {
  auto step = three_buckets();
  CHECK(step.knows(4));
  CHECK_FALSE(step.knows(5));
  CHECK_FALSE(step.knows(-1));
  CHECK(step.announce(2) == 1);
  CHECK(step.announce(2) == std::nullopt);
  CHECK(usage_error_of(step, 1) == "oktopk: bucketed: tensor 2 was ready already in this step");
  CHECK(step.announce(5) == std::nullopt);
  CHECK(usage_error_of(step, 2) == "oktopk: bucketed: there is no tensor 5 among 5");
  CHECK(step.order() == std::vector<int>{2});
  CHECK(usage_error_of(step, 0).empty());
  step.announce(0);
  CHECK(step.announce(1) == 0);
  CHECK(given_out(step) == std::vector<int>{0, 1});
  step.usage_error(0, fault::length_mismatch, "the first one stays");
  CHECK(usage_error_of(step, 0).empty());
  CHECK(usage_error_of(step, 2) == "oktopk: bucketed: there is no tensor 5 among 5");
  step.begin_step();
  for (int bucket = 0; bucket < 3; ++bucket) {
    CHECK(usage_error_of(step, bucket).empty());
  }
}

TEST_CASE("a misuse that comes after all calls spoils the first one of the next step") {
  auto step = three_buckets();
  for (int tensor = 0; tensor < 5; ++tensor) {
    step.announce(tensor);
  }
  CHECK(given_out(step).size() == 3);
  step.usage_error(1, fault::length_mismatch, "too late");
  step.usage_error(2, fault::length_mismatch, "later still");
  step.begin_step();
  CHECK(usage_error_of(step, 0) == "oktopk: bucketed: too late");
  CHECK(step.usage_error_of(0)->code() == fault::length_mismatch);
  CHECK(usage_error_of(step, 1).empty());
  step.begin_step();
  CHECK(usage_error_of(step, 0).empty());
}

TEST_CASE("without tensors there is no bucket, and a misuse is kept until it is taken") {
  announced_tensors step(oktopk::detail::plan_buckets({}, 4, {}));
  CHECK(given_out(step).empty());
  CHECK(step.take_late() == std::nullopt);
  CHECK(step.announce(0) == std::nullopt);
  step.begin_step();
  CHECK(given_out(step).empty());
  auto const late = step.take_late();
  REQUIRE(late);
  CHECK(late->sentence() == "bucketed: there is no tensor 0 among 0");
  CHECK(step.take_late() == std::nullopt);
}
