// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A training that can be saved can be restored, whatever finite gradients it has seen: what an object carries on is
// sound after each step, also after one that was refused; and what was restored goes on to the bit.

#include "sgd/gradients.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/adam.hpp>
#include <oktopk/bucketed.hpp>
#include <oktopk/sgd.hpp>

namespace test_of_extreme_gradients {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

constexpr std::int64_t length = 40;
constexpr int ranks = 2;
constexpr double largest = std::numeric_limits<float>::max();

/// Entries of all magnitudes up to `most`, of either sign.
std::vector<float> gradient_of(double most, int rank, int step) {
  std::vector<float> gradient(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    double const sign = (i + static_cast<std::size_t>(rank)) % 3 == 0 ? -1 : 1;
    gradient[i] =
        static_cast<float>(sign * most / (1 + static_cast<double>((i * 7 + static_cast<std::size_t>(step)) % 11)));
  }
  return gradient;
}

any made(in_process_communicator const& comm, std::string const& text) {
  return over(comm, text, {.length = length, .k = 4});
}

/// The object under test, with all that it needs; `step` is one step of a training, `state` and `restore` are its own.
struct in_sgd {
  explicit in_sgd(in_process_communicator const& comm, std::string const& text)
      : allreduce(made(comm, text)), of(allreduce, {.feedback = {.momentum = 0.9, .nesterov = true}}) {}
  void step(std::vector<float> const& gradient) { of.step(weights, to_view(gradient)); }
  any allreduce;
  oktopk::sgd<any> of;
  Kokkos::View<float*, memory> weights{"weights", static_cast<std::size_t>(length)};
};

struct in_adam {
  explicit in_adam(in_process_communicator const& comm, std::string const& text)
      : allreduce(made(comm, text)), of(allreduce, {.residual = oktopk::adam_residual::gradients,
                                                    .feedback = {.momentum = 0.5, .clip_norm = 0.9 * largest}}) {}
  void step(std::vector<float> const& gradient) { of.step(weights, to_view(gradient)); }
  any allreduce;
  oktopk::adam<any> of;
  Kokkos::View<float*, memory> weights{"weights", static_cast<std::size_t>(length)};
};

struct in_feedback {
  explicit in_feedback(in_process_communicator const& comm, std::string const& text)
      : allreduce(made(comm, text)), of(allreduce, {.momentum = 0.9, .factor_masking = false}) {}
  void step(std::vector<float> const& gradient) { of(to_view(gradient), 0.5); }
  any allreduce;
  oktopk::error_feedback<any> of;
};

struct in_buckets {
  explicit in_buckets(in_process_communicator const& comm, std::string const& text)
      : of(execution(), comm, std::vector<std::int64_t>{length, length},
           [&](oktopk::bucket const&) { return made(comm, text); },
           {.plan = {.bucket_bytes = 1}, .feedback = {.momentum = 0.9, .clip_norm = 1e30}}) {}
  void step(std::vector<float> const& gradient) {
    of.ready(0, to_view(gradient));
    of.ready(1, to_view(gradient));
    of.wait();
  }
  oktopk::bucketed<any> of;
};

template <class Training>
void check_restored(std::string const& text) {
  for (double const most : {0.0, 1e-45, 1e-38, 1.0, 1e18, 1e22, 1e36, largest / 8, largest}) {
    CAPTURE(text, most);
    oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
      Training training(comm, text);
      Training resumed(comm, text); // goes on from the state of the step before
      for (int step = 0; step < 6; ++step) {
        auto const gradient = gradient_of(step % 3 == 2 ? 1e-3 : most, comm.rank(), step);
        auto const heard = outcome_of([&] { training.step(gradient); });
        CHECK((heard.code == fault::none || heard.code == fault::non_finite));
        CHECK(outcome_of([&] { resumed.step(gradient); }) == heard);
        std::istringstream file(saved_bytes(training.of.state()));
        CHECK(saved_bytes(resumed.of.state()) == file.str());
        auto const saved = oktopk::load<decltype(training.of.state())>(file);
        CHECK(outcome_of([&] { resumed.of.restore(saved); }) == outcome());
        CHECK(saved_bytes(resumed.of.state()) == file.str());
      }
    });
  }
}

template <class Training>
void check_restored_over_all() {
  for (char const* const text : {"ok_topk", "gtopk", "dense"}) {
    check_restored<Training>(text);
  }
}

} // namespace

TEST_CASE("a training that can be saved can be restored: sgd") {
  check_restored_over_all<in_sgd>();
}

TEST_CASE("a training that can be saved can be restored: adam") {
  check_restored_over_all<in_adam>();
}

TEST_CASE("a training that can be saved can be restored: error_feedback") {
  check_restored_over_all<in_feedback>();
}

TEST_CASE("a training that can be saved can be restored: bucketed") {
  check_restored_over_all<in_buckets>();
}

} // namespace test_of_extreme_gradients
