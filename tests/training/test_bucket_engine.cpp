// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The engine of buckets: what tensors carry goes with them into other buckets, also through a saved state.

#include "sgd/gradients.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/direction_feedback.hpp>
#include <oktopk/training/bucket_engine.hpp>

#include <exception>

namespace test_of_bucket_engine {

using namespace oktopk_tests;
using oktopk::bucket;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using engine = oktopk::detail::bucket_engine<oktopk::direction_feedback<any>>;

constexpr int ranks = 2;
std::vector<std::int64_t> const lengths{4, 0, 6, 2};
std::vector<int> const first{2, 0};
std::vector<int> const second{1, 3};

engine made(in_process_communicator const& comm) {
  return {execution(), comm, lengths, {.momentum = 0.9}};
}

auto maker(in_process_communicator const& comm) {
  return [comm](bucket const& of) { return over(comm, "topk_a", {.length = of.length, .k = 1}); };
}

std::vector<float> reduce(engine& buckets, int number, std::vector<float> const& gradients) {
  auto const values = to_view(gradients);
  buckets.reduce(number, values);
  return to_vector(values);
}

std::vector<float> const ten{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};

} // namespace

TEST_CASE_ON(comm, ranks,
             "residual and velocity wait while their tensor is in no bucket, and go with it into another one") {
  auto buckets = made(comm);
  buckets.add(second, 0, maker(comm));
  buckets.add(first, 0, maker(comm));
  CHECK(reduce(buckets, 1, ten) == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0, 10});
  CHECK(buckets.state().residual == std::vector<float>{7, 8, 9, 0, 1, 2, 3, 4, 5, 6, 0, 0});
  CHECK(buckets.state().bucket_tensors == std::vector<std::int64_t>{1, 3, 2, 0});
  auto const before = buckets.state();
  buckets.remove(0);
  CHECK(buckets.plan().places[3].bucket == -1);
  CHECK(buckets.plan().places[2].bucket == 0); // was 1
  buckets.remove(0);
  CHECK(buckets.state().residual == before.residual);
  CHECK(buckets.state().velocity == before.velocity);
  CHECK(buckets.state().allreduces.empty());
  buckets.begin_step();
  buckets.add({0}, 0, maker(comm));
  CHECK(buckets.state().residual == before.residual);
  auto const averages = reduce(buckets, 0, {0, 0, 0, 0});
  CHECK(averages[2] == Approx(9 + 0.9 * 9)); // its residual and its velocity
  CHECK(averages[1] == 0);
}

TEST_CASE_ON(comm, ranks, "a saved state goes into whatever buckets there are, and into none") {
  auto buckets = made(comm);
  buckets.add(first, 0, maker(comm));
  reduce(buckets, 0, ten);
  auto const saved = buckets.state();
  auto same = made(comm);
  same.add(first, 0, maker(comm));
  same.restore(saved);
  any::state_type const unused = over(comm, "topk_a", {.length = 10, .k = 1}).state();
  CHECK((same.state().allreduces == saved.allreduces && saved.allreduces[0] != unused));
  auto other = made(comm);
  other.restore(saved); // in no bucket
  CHECK(other.state().residual == saved.residual);
  other.add({0, 3, 2}, 0, maker(comm));
  CHECK(other.plan().buckets[0].length == 12);
  CHECK(other.state().residual == saved.residual);
  CHECK(other.state().velocity == saved.velocity);
  CHECK(other.state().allreduces[0] == unused);
  other.restore(saved);
  CHECK(other.state().allreduces[0] == unused);
  CHECK(outcome_of([&] { other.at(1); }).says("no bucket 1 among 1"));
}

TEST_CASE_ON(comm, ranks,
             "where a call fails, the calls of the step before it are undone, in the next one nothing is left of it") {
  auto buckets = made(comm);
  buckets.add(first, 0, maker(comm));
  buckets.add(second, 0, maker(comm));
  reduce(buckets, 0, ten);
  CHECK(!buckets.begin_step());
  auto const before = buckets.state();
  reduce(buckets, 0, ten);
  CHECK(buckets.state().residual != before.residual);
  reduce(buckets, 1, {0, comm.rank() == 1 ? std::numeric_limits<float>::infinity() : 1});
  REQUIRE(buckets.failed());
  CHECK(buckets.state().residual == before.residual);
  CHECK(buckets.state().velocity == before.velocity);
  CHECK(outcome_of([&] { std::rethrow_exception(buckets.begin_step()); }).code == fault::non_finite);
  CHECK(!buckets.failed());
  reduce(buckets, 1, {1, 2});
  CHECK(!buckets.begin_step());
  buckets.withhold(3); // for a call that is not made
  buckets.fail(std::make_exception_ptr(oktopk::error(fault::bad_file, "cut short")));
  buckets.begin_step();
  CHECK(reduce(buckets, 1, {8, 2})[1] == 0); // was not withheld: the average of an entry that was not selected
}

TEST_CASE_ON(comm, ranks, "the last step can be undone once, and what it has begun from is there within it") {
  auto buckets = made(comm);
  buckets.add(first, 0, maker(comm));
  buckets.add(second, 0, maker(comm));
  reduce(buckets, 0, ten);
  CHECK(!buckets.begin_step());
  auto const before = buckets.state();
  CHECK(buckets.state_before_step().residual == before.residual); // nothing has come yet
  reduce(buckets, 0, ten);
  auto const within = buckets.state();
  CHECK(within.residual != before.residual);
  CHECK(buckets.state_before_step().residual == before.residual);
  CHECK(buckets.state_before_step().velocity == before.velocity);
  CHECK(buckets.state().residual == within.residual);
  buckets.continue_step();
  reduce(buckets, 1, {1, 2});
  CHECK(!buckets.begin_step());
  REQUIRE(buckets.can_undo());
  buckets.undo();
  CHECK(buckets.state().residual == before.residual);
  CHECK(buckets.state().velocity == before.velocity);
  CHECK(!buckets.can_undo());
  buckets.undo(); // nothing
  CHECK(buckets.state().residual == before.residual);
}

TEST_CASE_ON(comm, ranks, "a step that fails before its first call leaves the step before as it is") {
  auto buckets = made(comm);
  buckets.add(first, 0, maker(comm));
  reduce(buckets, 0, ten);
  auto const before = buckets.state();
  buckets.begin_step();
  buckets.fail(std::make_exception_ptr(oktopk::error(fault::bad_file, "cut short")));
  CHECK(buckets.state().residual == before.residual);
  CHECK(!buckets.can_undo());
  buckets.begin_step();
  reduce(buckets, 0, ten);
  buckets.remove(0); // takes its tensors' residuals along, and leaves no call to undo
  CHECK(!buckets.can_undo());
  buckets.add(first, 0, maker(comm));
  buckets.restore(before);
  CHECK(!buckets.can_undo());
}

TEST_CASE_ON(comm, ranks, "what a tensor carries can be put into another order, in a bucket and in none") {
  auto buckets = made(comm);
  buckets.add(first, 0, maker(comm)); // tensor 2 of 6 values, then tensor 0 of 4
  reduce(buckets, 0, ten);
  auto const before = buckets.state();
  std::vector<std::int64_t> const turned{3, 2, 1, 0};
  buckets.reorder(0, turned);
  CHECK(buckets.state().residual == std::vector<float>{0, 9, 8, 7, 1, 2, 3, 4, 5, 6, 0, 0});
  CHECK(buckets.state().velocity != before.velocity);
  CHECK(buckets.state().allreduces == before.allreduces);
  buckets.remove(0);
  buckets.reorder(0, turned);
  CHECK(buckets.state().residual == before.residual);
  CHECK(buckets.state().velocity == before.velocity);
}

TEST_CASE_ON(comm, ranks, "values of withheld ranges stay as they are") {
  auto buckets = made(comm);
  buckets.add(first, 0, maker(comm));
  buckets.at(0).withheld = {{1, 3}, {9, 10}};
  CHECK(reduce(buckets, 0, ten) == std::vector<float>{0, 2, 3, 0, 0, 0, 0, 0, 9, 10});
  CHECK(buckets.at(0).withheld.empty());
  buckets.begin_step();
  buckets.withhold(0); // behind the 6 values of tensor 2
  auto const left = reduce(buckets, 0, ten);
  CHECK(std::vector<float>(left.begin() + 6, left.end()) == std::vector<float>{7, 8, 9, 10});
  CHECK(left[0] == 0);
}

TEST_CASE_ON(comm, 1, "a step has the times of its calls, in their order, beside those when their gradients came") {
  auto buckets = made(comm);
  buckets.add(first, 0, maker(comm));
  buckets.add(second, 0, maker(comm));
  buckets.times() = {{{0.5, 0, 0}}};
  reduce(buckets, 1, {1, 2});
  reduce(buckets, 0, ten);
  auto const& calls = buckets.times().buckets;
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].ready == 0.5);
  CHECK((0 <= calls[0].began && calls[0].began <= calls[0].ended && calls[0].ended <= calls[1].began));
  CHECK(calls[1].began <= calls[1].ended);
  buckets.begin_step();
  buckets.times() = {};
  reduce(buckets, 0, ten);
  CHECK(buckets.times().buckets.size() == 1);
}

TEST_CASE_ON(comm, ranks, "values of withheld ranges count for no norm, and stay where the call fails") {
  engine buckets(execution(), comm, std::vector<std::int64_t>{4}, {.clip_norm = 5});
  buckets.add({0}, 0, maker(comm));
  buckets.at(0).withheld = {{0, 1}, {2, 3}};
  CHECK(reduce(buckets, 0, {7, 5, 100, 0}) == std::vector<float>{7, 5, 100, 0});
  buckets.begin_step();
  buckets.at(0).withheld = {{0, 1}, {2, 3}};
  auto const left = reduce(buckets, 0, {7, std::numeric_limits<float>::infinity(), 100, 0});
  CHECK((buckets.failed() && left[0] == 7 && left[2] == 100));
  CHECK(buckets.at(0).withheld.empty());
}

TEST_CASE_ON(comm, ranks, "the buckets of a step clip by the norm of all that have come, so none below it is scaled") {
  engine buckets(execution(), comm, std::vector<std::int64_t>{2, 2, 2}, {.clip_norm = 5});
  for (int const number : {0, 1, 2}) {
    buckets.add({number}, 0, maker(comm));
  }
  for (int step = 0; step < 2; ++step) {
    CHECK(reduce(buckets, 2, {0, 3}) == std::vector<float>{0, 3});
    CHECK(reduce(buckets, 0, {0, 4}) == std::vector<float>{0, 4}); // together 5
    CHECK(reduce(buckets, 1, {0, 12})[1] == Approx(12 * 5.0 / 13));
    buckets.begin_step();
  }
}

TEST_CASE_ON(comm, ranks, "tensors that come one by one, each in a step, clip each to the whole norm") {
  engine buckets(execution(), comm, {}, {.clip_norm = 5});
  for (int const number : {0, 1}) {
    CHECK(buckets.add_tensor(2) == number);
    buckets.add({number}, 0, maker(comm));
    CHECK(reduce(buckets, number, {6, 8}) == std::vector<float>{0, 4});
    buckets.begin_step();
  }
  CHECK(buckets.state().residual == std::vector<float>{3, 0, 3, 0});
  CHECK(buckets.residual_norm() == Approx(std::sqrt(18.0)));
  buckets.remove(0);
  CHECK(buckets.residual_norm() == Approx(std::sqrt(18.0)));
}

TEST_CASE("a residual that decays has its share in the next call, and stays as it was where that fails") {
  bool const nesterov = GENERATE(false, true);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    oktopk::detail::error_feedback_options how;
    how.residual_decay = 0.5;
    how.momentum = nesterov ? 0.5 : 0;
    how.nesterov = nesterov;
    engine buckets(execution(), comm, std::vector<std::int64_t>{2}, how);
    buckets.add({0}, 0, maker(comm));
    float const step = nesterov ? 1.5F : 1;
    reduce(buckets, 0, {1, 8});
    CHECK(buckets.state().residual == std::vector<float>{step, 0});
    buckets.begin_step();
    reduce(buckets, 0, {0, std::numeric_limits<float>::infinity()});
    CHECK(buckets.failed());
    CHECK(buckets.state().residual == std::vector<float>{step, 0});
    buckets.begin_step();
    reduce(buckets, 0, {0, 8});
    CHECK(buckets.state().residual == std::vector<float>{0.5F * step + (nesterov ? 0.25F : 0), 0});
    how.residual_decay = 1.5;
    CHECK(outcome_of([&] { oktopk::error_feedback(buckets.at(0).allreduce, how); }).says("residual_decay"));
  });
}

} // namespace test_of_bucket_engine
