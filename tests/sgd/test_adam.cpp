// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Adam on averages of gradients: the arithmetic of the paper's algorithm in plain loops, restart to the bit, options that are
// refused.

#include "sgd/gradients.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/adam.hpp>

#include <sstream>

namespace test_of_adam {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t length = 700;
constexpr int ranks = 3;
constexpr int iterations = 6;

constexpr auto* gradient_of = &correlated_gradient<length, ranks>;
constexpr auto gradients = oktopk::adam_residual::gradients;

} // namespace

TEST_CASE_ON(comm, ranks, "with a dense allreduce Adam is Adam on the average gradient") {
  oktopk::adam<any>::options const how{.learning_rate = 0.01, .weight_decay = 0.1, .residual = gradients};
  any allreduce = over(comm, "dense", {.length = length});
  oktopk::adam optimizer(allreduce, how);
  auto const size = static_cast<std::size_t>(length);
  auto const weights = to_view(std::vector<float>(size, 1));
  std::vector<double> expected(size, 1);
  std::vector<double> m(size);
  std::vector<double> v(size);
  for (int t = 1; t <= iterations; ++t) {
    double const rate = t < 4 ? 0.01 : 0.02;
    optimizer.set_learning_rate(rate);
    CHECK(optimizer.learning_rate() == rate);
    optimizer.step(weights, to_view(gradient_of(comm.rank(), t)));
    std::vector<double> average(size);
    for (int rank = 0; rank < ranks; ++rank) {
      auto const gradient = gradient_of(rank, t);
      for (std::size_t i = 0; i < size; ++i) {
        average[i] += static_cast<double>(gradient[i]) / ranks;
      }
    }
    for (std::size_t i = 0; i < size; ++i) {
      m[i] = 0.9 * m[i] + 0.1 * average[i];
      v[i] = 0.999 * v[i] + 0.001 * average[i] * average[i];
      double const m_hat = m[i] / (1 - std::pow(0.9, t));
      double const v_hat = v[i] / (1 - std::pow(0.999, t));
      expected[i] -= rate * (m_hat / (std::sqrt(v_hat) + 1e-8) + 0.1 * expected[i]);
    }
  }
  auto const found = to_vector(weights);
  for (std::size_t i = 0; i < size; ++i) {
    REQUIRE(static_cast<double>(found[i]) == Approx(expected[i]).margin(1e-5));
  }
}

TEST_CASE("Adam over a sparse allreduce: weights are equal on all ranks, and a restart gives the same bits") {
  std::vector<std::vector<float>> weights_of(ranks);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    any one = over(comm, "ok_topk", {.length = length, .k = 30});
    any other = over(comm, "ok_topk", {.length = length, .k = 30});
    oktopk::adam going_on(one, {.residual = gradients});
    oktopk::adam resumed(other, {.learning_rate = 1, .residual = gradients});
    auto const weights = to_view(std::vector<float>(static_cast<std::size_t>(length), 1));
    auto const again = to_view(std::vector<float>(static_cast<std::size_t>(length), 1));
    for (int t = 0; t < iterations; ++t) {
      auto const gradient = to_view(gradient_of(comm.rank(), t));
      going_on.step(weights, gradient);
      if (t == 2) {
        std::stringstream file;
        oktopk::save(file, going_on.state());
        resumed.restore(oktopk::load<decltype(going_on.state())>(file));
        Kokkos::deep_copy(again, weights);
      } else if (t > 2) {
        resumed.step(again, gradient);
      }
    }
    CHECK(bits(to_vector(weights)) == bits(to_vector(again)));
    CHECK(bits(to_vector(weights)) != bits(std::vector<float>(static_cast<std::size_t>(length), 1)));
    weights_of[static_cast<std::size_t>(comm.rank())] = to_vector(weights);
  });
  CHECK(bits(weights_of[0]) == bits(weights_of[1]));
  CHECK(bits(weights_of[0]) == bits(weights_of[2]));
}

TEST_CASE("options of Adam that make no sense, or differ, are an error on every rank") {
  auto const refuse = [](oktopk::adam<any>::options const& of_rank_1, fault expected) {
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      any allreduce = over(comm, "ok_topk", {.length = length, .k = 30});
      auto const how = comm.rank() == 1 ? of_rank_1 : oktopk::adam<any>::options{};
      CHECK(outcome_of([&] { oktopk::adam optimizer(allreduce, how); }).code == expected);
    });
  };
  refuse({.learning_rate = -1}, fault::option_out_of_range);
  refuse({.beta1 = 1}, fault::option_out_of_range);
  refuse({.beta2 = std::nan("")}, fault::option_out_of_range);
  refuse({.epsilon = 0}, fault::option_out_of_range);
  refuse({.epsilon = 1e-46}, fault::option_out_of_range);      // 0 as a float
  refuse({.beta2 = 1 - 1e-9}, fault::option_out_of_range);     // 1 as a float
  refuse({.learning_rate = 1e39}, fault::option_out_of_range); // infinite as a float
  refuse({.weight_decay = std::numeric_limits<double>::infinity()}, fault::option_out_of_range);
  refuse({.feedback = {.momentum = 2}}, fault::option_out_of_range);
  refuse({.residual = gradients, .shapes = {{700}}}, fault::option_out_of_range);
  refuse({.residual = gradients}, fault::ranks_disagree);
  refuse({.learning_rate = 1e-3}, fault::ranks_disagree);
}

TEST_CASE_ON(comm, ranks,
             "an average whose square overflows is named on every rank, nothing has changed, and training goes on") {
  any allreduce = over(comm, "ok_topk", {.length = length, .k = 30});
  oktopk::adam optimizer(allreduce, {.residual = gradients, .feedback = {.momentum = 0.5}});
  auto const weights = to_view(std::vector<float>(static_cast<std::size_t>(length), 1));
  optimizer.step(weights, to_view(gradient_of(comm.rank(), 0)));
  auto const before = optimizer.state();
  auto const weights_before = bits(to_vector(weights));
  auto bad = gradient_of(comm.rank(), 1);
  bad[7] = 3e22F; // on all ranks, so that one average is a round number
  bad[9] = -4e30F;
  auto const heard = outcome_of([&] { optimizer.step(weights, to_view(bad)); });
  CHECK(heard.code == fault::non_finite);
  CHECK(heard.text == "oktopk: adam: the mean of squares at index 7 overflows with the average 3e+22");
  auto const after = optimizer.state();
  CHECK(bits(to_vector(weights)) == weights_before);
  CHECK(bits(after.residual) == bits(before.residual));
  CHECK(bits(after.velocity) == bits(before.velocity));
  CHECK(bits(after.mean) == bits(before.mean));
  CHECK(bits(after.mean_of_squares) == bits(before.mean_of_squares));
  CHECK(after.steps == 1);
  bad[7] = 3e19F; // its square overflows, and a thousandth of it does not
  bad[9] = 0;
  CHECK_NOTHROW(optimizer.step(weights, to_view(bad)));
  CHECK(std::isfinite(optimizer.state().mean_of_squares[7]));
  CHECK_NOTHROW(optimizer.restore(optimizer.state()));
}

TEST_CASE_ON(comm, ranks,
             "weights of a wrong length, or a damaged state, are an error on every rank, and nothing has changed") {
  any allreduce = over(comm, "ok_topk", {.length = length, .k = 30});
  oktopk::adam optimizer(allreduce, {.residual = gradients});
  auto const gradient = to_view(gradient_of(comm.rank(), 0));
  auto const wrong = comm.rank() == 1 ? length + 1 : length;
  auto const weights = to_view(std::vector<float>(static_cast<std::size_t>(wrong)));
  CHECK(outcome_of([&] { optimizer.step(weights, gradient); }).code == fault::length_mismatch);
  CHECK(optimizer.state().steps == 0);
  auto saved = optimizer.state();
  if (comm.rank() == 2) {
    saved.mean.pop_back();
  }
  CHECK(outcome_of([&] { optimizer.restore(saved); }).code == fault::bad_state);
  for (std::int64_t const steps : {std::int64_t(-1), std::numeric_limits<std::int64_t>::max()}) {
    auto of_steps = optimizer.state();
    of_steps.steps = steps;
    CHECK(outcome_of([&] { optimizer.restore(of_steps); }).code == fault::bad_state);
  }
  CHECK(outcome_of([&] { optimizer.set_learning_rate(-1); }).code == fault::option_out_of_range);
  CHECK(optimizer.learning_rate() == 2e-4);
}

} // namespace test_of_adam
