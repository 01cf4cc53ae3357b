// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Compiled with -ffast-math (tests/CMakeLists.txt), which takes away std::isfinite and comparisons with NaN: options,
// states and gradients that are not finite are refused all the same.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"

#include <oktopk/adam.hpp>
#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/select/reused_threshold.hpp>
#include <oktopk/sgd.hpp>
#include <oktopk/training/density.hpp>

#ifndef __FAST_MATH__
#error "this file is to be compiled with -ffast-math"
#endif

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using allreduce_type = oktopk::topk_a<execution, in_process_communicator>;

// Patterns that the compiler cannot see.
double of_pattern(std::uint64_t pattern) {
  std::uint64_t const volatile hidden = pattern;
  return __builtin_bit_cast(double, static_cast<std::uint64_t>(hidden));
}

double not_a_number() {
  return of_pattern(0x7ff8000000000000U);
}

double infinite() {
  return of_pattern(0x7ff0000000000000U);
}

// What both ranks hear where each runs `attempt(allreduce, rank)`; all must hear the same.
template <class Attempt>
outcome heard_with(Attempt const& attempt) {
  std::vector<outcome> heard(2);
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    allreduce_type allreduce(execution(), comm, {.length = 100, .k = 10});
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] { attempt(allreduce, comm.rank()); });
  });
  CHECK(heard[0] == heard[1]);
  return heard[0];
}

outcome heard_with(oktopk::detail::error_feedback_options const& how) {
  return heard_with([&](allreduce_type& allreduce, int) { oktopk::error_feedback feedback(allreduce, how); });
}

} // namespace

TEST_CASE("options that are not finite are refused by their names") {
  for (double const bad : {not_a_number(), infinite(), -infinite()}) {
    constexpr fault out = fault::option_out_of_range;
    CHECK(unlike(heard_with({.momentum = bad}), out, "momentum") == "");
    CHECK(unlike(heard_with({.clip_norm = bad}), out, "clip_norm") == "");
    CHECK(unlike(heard_with({.residual_decay = bad}), out, "residual_decay") == "");
    CHECK(unlike(heard_with([&](auto& all, int) { oktopk::sgd made(all, {.learning_rate = bad}); }), out,
                 "the learning rate is not finite") == "");
    for (auto const& how :
         {oktopk::detail::adam_options{.learning_rate = bad}, oktopk::detail::adam_options{.weight_decay = bad}}) {
      CHECK(unlike(heard_with([&](auto& all, int) { oktopk::adam made(all, how); }), out,
                   "learning rate and weight decay must be finite and not negative") == "");
    }
    CHECK(unlike(heard_with([&](auto& all, int) { oktopk::adam made(all, {.beta1 = bad}); }), out, "beta1") == "");
    CHECK(unlike(heard_with([&](auto& all, int) { oktopk::adam made(all, {.epsilon = bad}); }), out, "epsilon") == "");
    CHECK(unlike(heard_with([&](auto& all, int) {
                   allreduce_type made(execution(), all.comm(), {.length = 100, .density = bad});
                 }),
                 fault::density_out_of_range, "is not in (0, 1]") == "");
    CHECK(oktopk::density_schedule{.density = bad}.problem() != "");
    CHECK(oktopk::density_schedule{.initial = bad}.problem() != "");
    CHECK(oktopk::adaptive_density<execution>::options{.low = bad}.problem() != "");
    CHECK(oktopk::adaptive_density<execution>::options{.high = bad}.problem() != "");
  }
  CHECK(oktopk::reused_threshold({.low = not_a_number()}).problem() != "");
  CHECK(oktopk::reused_threshold({.high = not_a_number()}).problem() != "");
  CHECK(oktopk::adaptive_density<execution>::options{.threshold = not_a_number()}.problem() != "");
  CHECK_FALSE(oktopk::reused_threshold({.high = infinite()}).bounded());
}

TEST_CASE("what has no limit takes any number") {
  CHECK(oktopk::unguarded_threshold().capacity(10, 100) == 100);
  CHECK(oktopk::reused_threshold({.high = infinite()}).capacity(10, 100) == 100);
  CHECK(oktopk::reused_threshold({.high = 1e300}).problem() == "");
  CHECK(oktopk::unguarded_threshold({.tau_prime = 1}).problem() == "");
  CHECK(oktopk::unguarded_threshold({.tau_prime = 0}).problem() != "");
}

TEST_CASE("good options are still taken") {
  CHECK(heard_with({.momentum = 0.9, .clip_norm = 1, .residual_decay = 1}) == outcome());
  CHECK(heard_with([](auto& all, int) { oktopk::adam made(all, {.learning_rate = 0}); }) == outcome());
  CHECK(oktopk::density_schedule{}.problem() == "");
  CHECK(oktopk::adaptive_density<execution>::options{}.problem() == "");
  CHECK(oktopk::reused_threshold({.high = infinite()}).problem() == "");
}

TEST_CASE("saved numbers that are not finite are refused") {
  auto const heard = heard_with([](auto& all, int rank) {
    oktopk::error_feedback feedback(all);
    auto state = feedback.state();
    state.residual[5] = rank == 1 ? static_cast<float>(not_a_number()) : 0;
    feedback.restore(state);
  });
  CHECK(unlike(heard, fault::bad_state, "is damaged") == "");
  CHECK(unlike(heard_with([](auto& all, int) {
                 oktopk::adam made(all, oktopk::detail::adam_options{});
                 auto state = made.state();
                 state.learning_rate = not_a_number();
                 made.restore(state);
               }),
               fault::bad_state, "damaged") == "");
}

TEST_CASE("a gradient that is not finite is named on all ranks") {
  for (double const bad : {not_a_number(), infinite()}) {
    auto const heard = heard_with([&](auto& all, int rank) {
      std::vector<float> gradient(100, 1);
      gradient[7] = rank == 1 ? static_cast<float>(bad) : 1;
      oktopk::error_feedback feedback(all, {.clip_norm = 1});
      feedback(to_view(gradient));
    });
    CHECK(unlike(heard, fault::non_finite, "rank 1: the value at index 7 is not finite") == "");
  }
}

TEST_CASE("a gradient whose squares overflow is clipped") {
  oktopk::in_process::run(2, [](in_process_communicator comm) {
    oktopk::dense<execution, in_process_communicator, double> allreduce(execution(), comm, {.length = 4});
    oktopk::error_feedback feedback(allreduce, {.clip_norm = 1});
    auto const sums = to_vector(feedback(to_view(std::vector<double>(4, 1e200))).values());
    CHECK(sums.size() == 4);
    for (double const sum : sums) {
      CHECK(std::abs(sum - 1) < 1e-9); // 0.5 of each rank
    }
  });
}

TEST_CASE("maxima and minima have NaN and both zeros") {
  using oktopk::detail::larger;
  using oktopk::detail::smaller;
  auto const is_nan = [](double value) { return !oktopk::detail::is_number(value); };
  CHECK(is_nan(larger::of(not_a_number(), 1.0)));
  CHECK(is_nan(larger::of(infinite(), not_a_number())));
  CHECK(is_nan(smaller::of(1.0, not_a_number())));
  double const negative_zero = of_pattern(std::uint64_t(1) << 63U);
  CHECK(oktopk::detail::sign_bit(smaller::of(negative_zero, of_pattern(0))));
  CHECK_FALSE(oktopk::detail::sign_bit(larger::of(negative_zero, of_pattern(0))));
}
