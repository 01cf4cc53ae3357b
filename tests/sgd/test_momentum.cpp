// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Momentum correction, factor masking, Nesterov's step and clipping: against the same arithmetic on the host, and what
// is saved, taken back and refused.

#include "sgd/gradients.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/sgd.hpp>

namespace test_of_momentum {

using namespace oktopk_tests;
using oktopk::error_feedback;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::detail::error_feedback_options;

namespace {

constexpr std::int64_t length = 5000; // several blocks of a norm
constexpr int ranks = 3;
constexpr int iterations = 8;

constexpr auto* gradient_of = &correlated_gradient<length, ranks>;

double norm_of(std::vector<float> const& values) {
  double sum = 0;
  for (float const value : values) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum);
}

/// What a rank must carry on, by the same rules in plain loops.
struct on_the_host {
  error_feedback_options how;
  std::vector<double> residual = std::vector<double>(static_cast<std::size_t>(length));
  std::vector<double> velocity = residual;

  template <class Update>
  void call(std::vector<float> const& gradient, double scale, Update const& update) {
    double const norm = norm_of(gradient);
    double const clip = how.clip_norm > 0 && norm > how.clip_norm ? how.clip_norm / norm : 1;
    for (std::size_t i = 0; i < residual.size(); ++i) {
      double const g = clip * static_cast<double>(gradient[i]);
      velocity[i] = how.momentum * velocity[i] + g;
      residual[i] += scale * (how.nesterov ? g + how.momentum * velocity[i] : velocity[i]);
    }
    auto const contributed = to_vector(update.contributed());
    for (auto const index : contributed) {
      residual[static_cast<std::size_t>(index)] = 0;
      if (how.factor_masking) {
        velocity[static_cast<std::size_t>(index)] = 0;
      }
    }
  }
};

} // namespace

TEST_CASE("momentum, masking, Nesterov's step and clipping do what plain loops do") {
  auto const how = GENERATE(
      error_feedback_options{.momentum = 0.9}, error_feedback_options{.momentum = 0.9, .factor_masking = false},
      error_feedback_options{.momentum = 0.5, .nesterov = true}, error_feedback_options{.clip_norm = 2},
      error_feedback_options{.momentum = 0.7, .clip_norm = 3});
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    any allreduce = over(comm, "ok_topk", {.length = length, .k = 100});
    error_feedback feedback(allreduce, how);
    on_the_host expected{how};
    for (int iteration = 0; iteration < iterations; ++iteration) {
      auto const gradient = gradient_of(comm.rank(), iteration);
      auto const& update = feedback(to_view(gradient), 0.5);
      expected.call(gradient, 0.5, update);
    }
    auto const residual = to_vector(feedback.residual());
    for (std::size_t i = 0; i < residual.size(); ++i) {
      REQUIRE(static_cast<double>(residual[i]) == Approx(expected.residual[i]).margin(1e-4));
    }
  });
}

TEST_CASE_ON(comm, 4, "entries that a scheme has dropped on the way keep their velocity") {
  any allreduce = over(comm, "gtopk", {.length = length, .k = 20});
  error_feedback feedback(allreduce, {.momentum = 0.9});
  std::vector<float> gradient(static_cast<std::size_t>(length), 0.001F);
  for (std::size_t i = 0; i < 20; ++i) { // others on each rank, larger on the higher ones
    gradient[100 * static_cast<std::size_t>(comm.rank()) + i] = static_cast<float>(comm.rank() + 1);
  }
  auto const& update = feedback(to_view(gradient));
  auto const reached = to_vector(update.indices());
  auto const velocity = feedback.state().velocity;
  CHECK(reached.front() == 300);
  for (auto const index : to_vector(update.contributed())) {
    bool const is_there = std::find(reached.begin(), reached.end(), index) != reached.end();
    CHECK((velocity[static_cast<std::size_t>(index)] == 0) == is_there);
  }
}

TEST_CASE("with a dense allreduce sgd is plain SGD on the average, and its momentum that of SGD, unmasked") {
  double const momentum = GENERATE(0.0, 0.9);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    any allreduce = over(comm, "dense", {.length = length});
    oktopk::sgd optimizer(allreduce, {.learning_rate = 0.1, .feedback = {.momentum = momentum}});
    auto const weights = to_view(std::vector<float>(static_cast<std::size_t>(length)));
    std::vector<double> expected(static_cast<std::size_t>(length));
    std::vector<double> velocity(static_cast<std::size_t>(length));
    int seen = 0; // accumulators
    optimizer.before_allreduce([&seen](auto const& accumulator) { seen += accumulator.extent(0) == length ? 1 : 0; });
    for (int iteration = 0; iteration < iterations; ++iteration) {
      optimizer.step(weights, to_view(gradient_of(comm.rank(), iteration)));
      std::vector<double> average(static_cast<std::size_t>(length));
      for (int rank = 0; rank < ranks; ++rank) {
        auto const gradient = gradient_of(rank, iteration);
        for (std::size_t i = 0; i < average.size(); ++i) {
          average[i] += static_cast<double>(gradient[i]) / ranks;
        }
      }
      for (std::size_t i = 0; i < expected.size(); ++i) {
        velocity[i] = momentum * velocity[i] + average[i];
        expected[i] -= 0.1 * velocity[i];
      }
    }
    auto const found = to_vector(weights);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      REQUIRE(static_cast<double>(found[i]) == Approx(expected[i]).margin(1e-4));
    }
    CHECK(to_vector(optimizer.residual()) == std::vector<float>(static_cast<std::size_t>(length)));
    CHECK(seen == iterations);
  });
}

TEST_CASE_ON(comm, 1, "a momentum is checked as a value of the gradient's type") {
  oktopk::dense<execution, in_process_communicator, double> allreduce(execution(), comm, {.length = length});
  CHECK(outcome_of([&] { error_feedback feedback(allreduce, {.momentum = 1 - 1e-9}); }).code == fault::none);
}

TEMPLATE_TEST_CASE("gradients of any magnitude are clipped, and nothing of them is lost", "", float, double) {
  constexpr bool is_double = sizeof(TestType) == 8;
  struct sizes {
    double largest; // of the gradient
    double clip_norm;
  };
  std::vector<sizes> cases{{1e10, 1}, {1e20, 1e-30}, {1e38, 1e-37}, {3e38, 1e-5}, {1e-38, 1e-41}};
  if (is_double) {
    cases = {{1e100, 1},      {1e200, 1},       {1.7e308, 1},     {1e308, 1e-300},
             {1e300, 1e-305}, {1e-200, 1e-250}, {1e-300, 1e-306}, {5e-324, 1e-323}};
  }
  auto const how = GENERATE(error_feedback_options{}, error_feedback_options{.momentum = 0.5},
                            error_feedback_options{.momentum = 0.5, .nesterov = true});
  double const scale = how.momentum == 0 ? 0.25 : 1;
  double const ahead = how.nesterov ? 1.5 : 1; // of the first step
  for (auto const& [largest, clip_norm] : cases) {
    CAPTURE(largest, clip_norm, how.momentum, how.nesterov);
    oktopk::in_process::run(ranks, [&, most = largest, to = clip_norm](in_process_communicator comm) {
      constexpr std::int64_t few = 3000;
      oktopk::topk_a<execution, in_process_communicator, oktopk::with_format<oktopk::coo<TestType>>> allreduce(
          execution(), comm, {.length = few, .k = 4});
      error_feedback_options clipped = how;
      clipped.clip_norm = to;
      error_feedback feedback(allreduce, clipped);
      std::vector<TestType> gradient(few);
      for (std::size_t i = 0; i < 100; ++i) {
        gradient[i * 17] = static_cast<TestType>((i % 2 == 0 ? 1 : -1) * most / (1 + 0.5 * static_cast<double>(i)));
      }
      long double squares = 0;
      for (TestType const value : gradient) {
        auto const part = static_cast<long double>(value) / static_cast<long double>(most);
        squares += part * part;
      }
      auto const norm = static_cast<long double>(most) * std::sqrt(squares);
      auto const& update = feedback(to_view(gradient), scale);
      auto total = to_vector(feedback.residual());
      auto const indices = to_vector(update.indices());
      auto const values = to_vector(update.values());
      CHECK(indices.size() >= 4);
      for (std::size_t i = 0; i < indices.size(); ++i) {
        auto const at = static_cast<std::size_t>(indices[i]);
        CHECK(total[at] == 0); // the ranks have the same gradient, so all of it went
        total[at] = values[i] / ranks;
      }
      long double const factor = norm > static_cast<long double>(to) ? static_cast<long double>(to) / norm : 1;
      for (std::size_t i = 0; i < total.size(); ++i) {
        long double const expected = static_cast<long double>(scale * ahead) * factor * gradient[i];
        long double const margin = 4 * std::abs(expected) * std::numeric_limits<TestType>::epsilon() +
                                   4 * std::numeric_limits<TestType>::denorm_min();
        if (!(std::abs(static_cast<long double>(total[i]) - expected) <= margin)) {
          FAIL_CHECK("index " << i << ": " << total[i] << " instead of " << expected);
        }
      }
    });
  }
}

TEST_CASE("options that make no sense, or differ, are an error on every rank") {
  auto const refuse = [](error_feedback_options const& of_rank_1, fault expected, std::string const& words) {
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      any allreduce = over(comm, "ok_topk", {.length = length, .k = 100});
      auto const how = comm.rank() == 1 ? of_rank_1 : error_feedback_options{.momentum = 0.5};
      auto const heard = outcome_of([&] { error_feedback feedback(allreduce, how); });
      CHECK(unlike(heard, expected, words) == "");
    });
  };
  refuse({.momentum = 1}, fault::option_out_of_range, "momentum");
  refuse({.momentum = -0.1}, fault::option_out_of_range, "momentum");
  refuse({.momentum = std::nan("")}, fault::option_out_of_range, "momentum");
  refuse({.momentum = 1 - 1e-9}, fault::option_out_of_range, "the momentum 0.99999999900000003 is 1 as a float");
  refuse({.nesterov = true}, fault::option_out_of_range, "nesterov needs a momentum");
  refuse({.momentum = 0.5, .clip_norm = -1}, fault::option_out_of_range, "clip_norm");
  refuse({.momentum = 0.5, .clip_norm = std::numeric_limits<double>::infinity()}, fault::option_out_of_range,
         "clip_norm");
  refuse({.momentum = 0.25}, fault::ranks_disagree, "momentum = 0.25");
}

TEST_CASE_ON(comm, ranks, "a state of another momentum is refused on every rank") {
  any allreduce = over(comm, "ok_topk", {.length = length, .k = 100});
  error_feedback without(allreduce);
  error_feedback with(allreduce, {.momentum = 0.9});
  auto const saved = without.state();
  CHECK(outcome_of([&] { with.restore(saved); }).code == fault::bad_state);
}

} // namespace test_of_momentum
