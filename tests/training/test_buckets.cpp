// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Plans of buckets, which one's call is next in whatever order tensors are announced, and the times that a step reports.

#include "support/catch.hpp"

#include <oktopk/bucketed.hpp>
#include <oktopk/training/bucket_engine.hpp>

using oktopk::detail::announced_tensors;
using oktopk::detail::bucket_options;
using oktopk::detail::plan_buckets;
using oktopk::detail::problem_of;

namespace {

std::vector<std::int64_t> lengths_of(oktopk::detail::bucket_plan const& plan) {
  std::vector<std::int64_t> lengths;
  for (oktopk::bucket const& each : plan.buckets) {
    lengths.push_back(each.length);
  }
  return lengths;
}

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

TEST_CASE("buckets are filled in order up to their size, and a tensor that is larger has its own") {
  std::vector<std::int64_t> const lengths{10, 20, 5, 100, 1, 0, 30};
  auto const plan = plan_buckets(lengths, 4, {.bucket_bytes = 4 * 35});
  CHECK(lengths_of(plan) == std::vector<std::int64_t>{35, 100, 31});
  CHECK(plan.buckets[0].tensors == std::vector<int>{0, 1, 2});
  CHECK(plan.buckets[1].tensors == std::vector<int>{3});
  CHECK(plan.buckets[2].tensors == std::vector<int>{4, 5, 6});
  CHECK(plan.places[2].bucket == 0);
  CHECK(plan.places[2].offset == 30);
  CHECK(plan.places[6].offset == 1);
  CHECK(plan.places[6].length == 30);
}

TEST_CASE("the order of readiness decides, and tensors of another density begin a bucket") {
  std::vector<std::int64_t> const lengths{10, 20, 30};
  auto const plan = plan_buckets(lengths, 8, {.order = {2, 1, 0}, .densities = {1, 0.01, 0.01}});
  CHECK(lengths_of(plan) == std::vector<std::int64_t>{50, 10});
  CHECK(plan.buckets[0].density == 0.01);
  CHECK(plan.buckets[1].density == 1);
  CHECK(plan.places[2].offset == 0);
  CHECK(plan.places[1].offset == 30);
  CHECK(plan.places[0].bucket == 1);
  CHECK(plan_buckets(lengths, 8, {.densities = {0.5}}).buckets.front().density == 0.5);
}

TEST_CASE("every tensor has one place of its own, for any sizes") {
  std::vector<std::int64_t> lengths;
  for (int i = 0; i < 200; ++i) {
    lengths.push_back((i * 7919) % 977);
  }
  for (std::int64_t const bytes : {1, 100, 4000, 1 << 20}) {
    auto const plan = plan_buckets(lengths, 4, {.bucket_bytes = bytes});
    std::size_t tensors = 0;
    for (std::size_t b = 0; b < plan.buckets.size(); ++b) {
      std::int64_t at = 0;
      for (int const tensor : plan.buckets[b].tensors) {
        auto const& place = plan.places[static_cast<std::size_t>(tensor)];
        REQUIRE(place.bucket == static_cast<int>(b));
        REQUIRE(place.offset == at);
        at += lengths[static_cast<std::size_t>(tensor)];
      }
      REQUIRE(at == plan.buckets[b].length);
      REQUIRE((4 * at <= bytes || plan.buckets[b].tensors.size() == 1 || at == 0));
      tensors += plan.buckets[b].tensors.size();
    }
    CHECK(tensors == lengths.size());
  }
  CHECK(plan_buckets({}, 4, {}).buckets.empty());
}

TEST_CASE("options that make no sense have a problem") {
  std::vector<std::int64_t> const lengths{10, 20, 30};
  CHECK(problem_of(lengths, {}).empty());
  CHECK(problem_of(lengths, {.order = {2, 0, 1}, .densities = {1, 0.5, 0.1}}).empty());
  CHECK(!problem_of(lengths, {.bucket_bytes = 0}).empty());
  CHECK(!problem_of(lengths, {.order = {0, 1}}).empty());
  CHECK(!problem_of(lengths, {.order = {0, 1, 1}}).empty());
  CHECK(!problem_of(lengths, {.order = {0, 1, 3}}).empty());
  CHECK(!problem_of(lengths, {.densities = {0.1, 0.2}}).empty());
  CHECK(!problem_of(lengths, {.densities = {0}}).empty());
  CHECK(!problem_of(std::vector<std::int64_t>{-1}, {}).empty());
}

TEST_CASE("times tell what was hidden and what could have been") {
  oktopk::detail::overlap_times times;
  times.buckets = {{1, 1, 3}, {2, 4, 5}, {6, 6, 8}};
  times.wait_began = 6;
  times.wait_ended = 8;
  CHECK(times.communication() == 5);
  CHECK(times.hidden() == 3);   // the last call began when the backward pass had ended
  CHECK(times.hideable() == 3); // the second could have begun at 3, not more hidden
  times.buckets = {{1, 5, 7}, {6, 7, 8}};
  CHECK(times.hidden() == 1);
  CHECK(times.hideable() == 2);
}

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
