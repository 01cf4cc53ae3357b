// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Error feedback by itself: nothing is lost, averages are sums over P, and a step of `sgd` is a call and w -= average.

#include "sgd/gradients.hpp"
#include "support/call.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/sgd.hpp>

#include <cstring>
#include <stdexcept>

namespace test_of_error_feedback {

using namespace oktopk_tests;
using oktopk::error_feedback;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t length = 600;
constexpr int ranks = 3;
constexpr int iterations = 6;

constexpr auto* gradient_of = &correlated_gradient<length, ranks>;

/// The upper half of a float, as half-precision gradients of training come.
struct half_of_float {
  std::uint16_t bits = 0;

  half_of_float() = default;
  explicit half_of_float(float value) {
    std::uint32_t all = 0;
    std::memcpy(&all, &value, sizeof all);
    bits = static_cast<std::uint16_t>(all >> 16U);
  }

  KOKKOS_INLINE_FUNCTION explicit operator float() const {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16U);
  }
};

} // namespace

TEST_CASE("residuals and averages add up to the gradients, of which withheld ranges take no part") {
  std::string const text =
      GENERATE(as<std::string>(), "ok_topk", "gtopk", "topk_a", "topk_dsa", "ok_topk(format=packed(values=sign))");
  std::vector<oktopk::detail::entry_range> const withheld{{100, 180}, {180, 181}, {590, length}};
  std::vector<double> went_in(static_cast<std::size_t>(length));
  std::vector<double> came_out(static_cast<std::size_t>(length));
  double const momentum = GENERATE(0.0, 0.9);
  std::int64_t const k = GENERATE(20, 590); // or so many that zeros are selected as well
  CAPTURE(text, momentum, k);
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    any allreduce = over(comm, text, {.length = length, .k = k});
    error_feedback feedback(allreduce, {.momentum = momentum, .factor_masking = false});
    auto const average = to_view(std::vector<float>(static_cast<std::size_t>(length)));
    std::vector<double> velocity(static_cast<std::size_t>(length));
    for (int iteration = 0; iteration < iterations; ++iteration) {
      bool const withholds = iteration % 2 == 1;
      auto gradient = gradient_of(comm.rank(), iteration);
      std::vector<bool> takes_part(gradient.size(), true);
      if (withholds) {
        for (auto const range : withheld) {
          std::fill(takes_part.begin() + range.begin, takes_part.begin() + range.end, false);
        }
        gradient[150] = std::numeric_limits<float>::quiet_NaN(); // counts for nothing
      }
      auto const before = feedback.state();
      feedback.average(feedback(to_view(gradient), 0.5, withholds ? withheld : decltype(withheld)()), average);
      if (iteration == 3) { // a call that is taken back, and made again
        feedback.undo();
        REQUIRE(bits(feedback.state().residual) == bits(before.residual));
        REQUIRE(bits(feedback.state().velocity) == bits(before.velocity));
        feedback.average(feedback(to_view(gradient), 0.5, withheld), average);
      }
      auto const after = feedback.state();
      auto const averages = to_vector(average);
      for (std::size_t i = 0; i < averages.size(); ++i) {
        if (takes_part[i]) {
          velocity[i] = momentum * velocity[i] + static_cast<double>(gradient[i]);
          went_in[i] += 0.5 * velocity[i];
          came_out[i] += static_cast<double>(averages[i]); // P ranks hold a P-th of the sum each
        } else {
          REQUIRE(after.residual[i] == before.residual[i]);
          REQUIRE((momentum == 0 || after.velocity[i] == before.velocity[i]));
        }
      }
    }
    auto const residual = to_vector(feedback.residual());
    for (std::size_t i = 0; i < residual.size(); ++i) {
      came_out[i] += static_cast<double>(residual[i]);
    }
  });
  for (std::size_t i = 0; i < went_in.size(); ++i) {
    REQUIRE(came_out[i] == Approx(went_in[i]).margin(momentum == 0 && k == 20 ? 1e-5 : 1e-4));
  }
}

TEST_CASE_ON(comm, ranks, "a step of sgd is a call of error feedback and a subtraction of the averages, at any rate") {
  any one = over(comm, "ok_topk", {.length = length, .k = 20});
  any other = over(comm, "ok_topk", {.length = length, .k = 20});
  oktopk::sgd optimizer(one, {.learning_rate = 7});
  error_feedback feedback(other);
  auto const weights = to_view(std::vector<float>(static_cast<std::size_t>(length), 1));
  std::vector<float> expected(static_cast<std::size_t>(length), 1);
  auto const average = to_view(std::vector<float>(static_cast<std::size_t>(length)));
  for (int iteration = 0; iteration < iterations; ++iteration) {
    auto const gradient = to_view(gradient_of(comm.rank(), iteration));
    double const rate = iteration < 3 ? 0.25 : 0.125;
    optimizer.set_learning_rate(rate);
    optimizer.step(weights, gradient);
    feedback.average(feedback(gradient, rate), average);
    auto const averages = to_vector(average);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] -= averages[i];
    }
    CHECK(bits(to_vector(weights)) == bits(expected));
    CHECK(bits(to_vector(optimizer.residual())) == bits(to_vector(feedback.residual())));
  }
  auto const& update = feedback(to_view(gradient_of(comm.rank(), iterations)));
  auto const heard = outcome_of([&] { feedback.average(update, to_view(std::vector<float>(10))); });
  CHECK(unlike(heard, fault::length_mismatch, "averages of length 600 do not fit a vector of length 10") == "");
}

TEST_CASE_ON(comm, ranks, "gradients in half precision are summed in float, as the same numbers in float are") {
  any one = over(comm, "ok_topk", {.length = length, .k = 20});
  any other = over(comm, "ok_topk", {.length = length, .k = 20});
  error_feedback narrow(one);
  error_feedback wide(other);
  for (int iteration = 0; iteration < iterations; ++iteration) {
    Kokkos::View<half_of_float*, Kokkos::HostSpace> const halves("halves", static_cast<std::size_t>(length));
    std::vector<float> floats(static_cast<std::size_t>(length));
    auto const gradient = gradient_of(comm.rank(), iteration);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      halves(i) = half_of_float(gradient[i]);
      floats[i] = static_cast<float>(halves(i));
    }
    auto const on_device = Kokkos::create_mirror_view_and_copy(memory(), halves);
    auto const& a = narrow(on_device);
    auto const& b = wide(to_view(floats));
    CHECK(to_vector(a.indices()) == to_vector(b.indices()));
    CHECK(bits(to_vector(a.values())) == bits(to_vector(b.values())));
  }
  CHECK(bits(to_vector(narrow.residual())) == bits(to_vector(wide.residual())));
}

TEST_CASE("what is wrong with a gradient, or a rank makes fail, is an error on every rank, and nothing has changed") {
  double const clip_norm = GENERATE(0.0, 1.0);
  // `fail(feedback, gradient)` on rank 1, and what all ranks say
  auto const check = [=](std::string const& what, fault code, auto const& fail, std::string const& words = "") {
    CAPTURE(what, clip_norm);
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      any allreduce = over(comm, "ok_topk", {.length = length, .k = 20});
      error_feedback feedback(allreduce, {.momentum = 0.9, .clip_norm = clip_norm});
      feedback(to_view(gradient_of(comm.rank(), 0)));
      auto const before = feedback.state();
      auto const heard = outcome_of([&] {
        auto gradient = gradient_of(comm.rank(), 1);
        if (comm.rank() == 1) {
          fail(feedback, gradient);
        }
        feedback(to_view(gradient));
      });
      CHECK(unlike(heard, code, "rank 1: " + words) == "");
      CHECK(bits(feedback.state().residual) == bits(before.residual));
      CHECK(bits(feedback.state().velocity) == bits(before.velocity));
      CHECK_NOTHROW(feedback(to_view(gradient_of(comm.rank(), 1))));
    });
  };
  check("too short", fault::length_mismatch, [](auto&, auto& gradient) { gradient.resize(10); });
  check("infinite", fault::non_finite, [](auto&, auto& gradient) { gradient[5] = INFINITY; });
  for (std::int64_t const named : {std::int64_t(-1), std::int64_t(0), length, length + 5}) {
    check(
        "named " + std::to_string(named), fault::length_mismatch,
        [=](auto& feedback, auto&) { feedback.fail_on_all(named); },
        named < 0 || named == length ? "it has no accumulator for this call"
                                     : "the accumulator has " + std::to_string(named) + " elements");
  }
}

TEST_CASE("a hook that throws on one rank ends the call on all, with its fault, and all go on") {
  auto const check = [](auto const& thrown, fault code) { // `code` on the other ranks
    std::vector<std::string> heard(ranks);
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      any allreduce = over(comm, "ok_topk", {.length = length, .k = 20});
      error_feedback feedback(allreduce);
      if (comm.rank() == 2) {
        feedback.before_allreduce([&](auto) { throw thrown; });
      }
      try {
        feedback(to_view(gradient_of(comm.rank(), 0)));
      } catch (std::exception const& caught) {
        auto const* const error = dynamic_cast<oktopk::error const*>(&caught);
        CHECK((comm.rank() == 2 || (error != nullptr && error->code() == code)));
        heard[static_cast<std::size_t>(comm.rank())] = caught.what();
      }
      feedback.before_allreduce(nullptr);
      CHECK_NOTHROW(feedback(to_view(gradient_of(comm.rank(), 0))));
    });
    CHECK(heard[0].find("rank 2: it has no accumulator for this call") != std::string::npos);
    CHECK(heard[0].find(oktopk::name(code)) != std::string::npos);
    CHECK(heard[1] == heard[0]);
    CHECK(heard[2] == thrown.what());
  };
  check(std::runtime_error("the disk is full"), fault::caller_failed);
  check(oktopk::error(fault::bad_file, "the file is cut short"), fault::bad_file);
  check(oktopk::error(fault::timed_out, "of another communicator"), fault::caller_failed);
}

} // namespace test_of_error_feedback
