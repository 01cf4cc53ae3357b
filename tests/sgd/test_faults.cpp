// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "sgd/gradients.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/sgd.hpp>

// What goes wrong in a step or a restore is an error on every rank and leaves weights and residual as they were.
namespace test_of_faults {

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

constexpr std::size_t length = 1200; // long enough for a selector that guesses

std::vector<float> gradient_of(int rank, int iteration) {
  std::vector<float> gradient(length);
  correlated{43, 9}({rank, 1, iteration}, gradient);
  return gradient;
}

Kokkos::View<float const*, memory> as_input(std::vector<float> const& values) {
  return to_view(values);
}

/// An optimiser with all it needs, on one rank.
struct training {
  training(in_process_communicator comm, std::string const& text)
      : rank(comm.rank()), allreduce(over(comm, text, {.length = length})),
        optimizer(execution(), allreduce, {.learning_rate = 0.1}), weights(to_view(std::vector<float>(length, 0.5F))) {}

  void step(int iteration) { optimizer.step(weights, as_input(gradient_of(rank, iteration))); }

  /// All that steps change, to the bit.
  auto all_state() const { return std::pair(bits(to_vector(weights)), saved_bytes(optimizer.state())); }

  int rank;
  any allreduce;
  oktopk::sgd<any> optimizer;
  Kokkos::View<float*, memory> weights;
};

/// Something bad in the middle of a training, on all ranks at once, changes nothing. `bad(training)`.
template <class Bad>
void check_untouched(int ranks, std::string const& text, fault code, std::string const& words, Bad const& bad) {
  CAPTURE(text, ranks, words);
  std::vector<outcome> said(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    training touched(comm, text);
    for (int iteration = 0; iteration < 8; ++iteration) {
      auto const before = touched.all_state();
      auto& mine = said[static_cast<std::size_t>(comm.rank())];
      mine = outcome_of([&] { bad(touched); });
      CHECK(mine.code == code);
      CHECK((touched.all_state() == before));
      touched.step(iteration);
    }
  });
  CHECK(unlike(said, code, words) == "");
}

/// Whatever goes wrong in a step or in a restore, on the last rank. `State` is that of the algorithm inside.
template <class State>
void check_faults(int ranks, std::string const& text) {
  int const last = ranks - 1;
  std::string const who = "rank " + std::to_string(last) + ": ";
  auto const in_step = [&](fault code, std::string const& words, auto const& bad) {
    check_untouched(ranks, text, code, words, [&](auto& on) {
      auto gradient = gradient_of(on.rank, 100);
      auto weights = on.weights;
      bad(on.rank, gradient, weights);
      on.optimizer.step(weights, as_input(gradient));
    });
  };
  in_step(fault::non_finite, who + "the value at index 7 is not finite", [=](int rank, auto& gradient, auto&) {
    gradient[7] = rank == last ? std::numeric_limits<float>::quiet_NaN() : gradient[7];
  });
  in_step(fault::length_mismatch, who + "the accumulator has 1199 elements, expected 1200",
          [=](int rank, auto& gradient, auto&) { gradient.resize(rank == last ? length - 1 : length); });
  in_step(fault::length_mismatch, who + "the accumulator has 1201 elements, expected 1200",
          [=](int rank, auto&, auto& weights) {
            weights = rank == last ? to_view(std::vector<float>(length + 1)) : weights;
          });
  in_step(fault::length_mismatch, "rank 0: the accumulator has 0 elements, expected 1200",
          [](int, auto& gradient, auto&) { gradient.clear(); });
  auto const in_restore = [&](fault code, auto const& spoil, std::string const& words = "") {
    check_untouched(ranks, text, code, words, [&](auto& on) {
      auto saved = on.optimizer.state();
      spoil(saved, on.rank == last);
      on.optimizer.restore(saved);
    });
  };
  in_restore(fault::bad_state, [](auto& s, bool) { s.residual.pop_back(); });
  in_restore(fault::bad_state, [](auto& s, bool here) { s.residual.resize(here ? 3 : length); });
  std::string const of_several = ranks == 1 ? "" : who;
  for (float const bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    in_restore(
        fault::bad_state, [=](auto& s, bool here) { s.residual[7] = here ? bad : 0; }, of_several);
  }
  in_restore(fault::bad_state, [](auto& s, bool here) { s.learning_rate = here ? NAN : s.learning_rate; });
  auto const add = [](auto& s, std::int64_t calls) {
    change_inside<State>(s.allreduce, [=](State& inside) { inside.iteration += calls; });
  };
  in_restore(fault::bad_state, [=](auto& s, bool) { add(s, -50); });
  if (ranks > 1) {
    in_restore(fault::ranks_disagree, [=](auto& s, bool here) { add(s, here ? 1 : 0); });
    in_restore(fault::ranks_disagree, [](auto& s, bool here) { s.learning_rate *= here ? 2 : 1; });
  }
}

template <class Value>
using dense = oktopk::dense<execution, in_process_communicator, Value>;

/// The rate of rank 1 when an optimizer is made.
template <class Value>
std::vector<outcome> made_with(double rate) {
  return outcomes_of(3, [&](in_process_communicator comm) {
    dense<Value> allreduce(execution(), comm, {.length = length});
    oktopk::sgd<dense<Value>> const of_it(execution(), allreduce, {.learning_rate = comm.rank() == 1 ? rate : 0.1});
  });
}

} // namespace

TEST_CASE("what fails leaves weights and residual as they were, over ok_topk") {
  check_faults<state_of_ok_topk>(1, "ok_topk(k=12, partition=sampled(tau=5))");
  check_faults<state_of_ok_topk>(4, "ok_topk(k=12, partition=sampled(tau=5))");
}

TEST_CASE("what fails leaves weights and residual as they were, over dense") {
  check_faults<dense<float>::state_type>(3, "dense");
}

TEST_CASE("a learning rate that is not finite or differs between ranks is refused") {
  for (double const rate : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    CHECK(unlike(made_with<float>(rate), fault::option_out_of_range, "the learning rate is not finite") == "");
  }
  CHECK(unlike(made_with<float>(0.2), fault::ranks_disagree, "learning rate = 0.2") == "");

  oktopk::in_process::run(1, [&](in_process_communicator comm) {
    training some(comm, "dense");
    CHECK(outcome_of([&] { some.optimizer.set_learning_rate(NAN); }).code == fault::option_out_of_range);
    CHECK(some.optimizer.learning_rate() == 0.1);
  });
}

TEMPLATE_TEST_CASE("a learning rate that is out of range for the values is refused by its name", "", float, double) {
  // What a float makes infinity or zero of, and a double not.
  constexpr bool narrow = std::is_same_v<TestType, float>;
  using scheme = dense<TestType>;
  struct bad_rate {
    double rate;
    std::string words;
  };
  for (auto const& [rate, words] : {bad_rate{1e300, "the learning rate 1e+300 is infinite as a float"},
                                    bad_rate{-3.5e38, "the learning rate -3.5e+38 is infinite as a float"},
                                    bad_rate{1e-60, "the learning rate 1e-60 is zero as a float"}}) {
    CAPTURE(rate);
    // On one rank alone it is in any case another rate than the others'.
    CHECK(unlike(made_with<TestType>(rate), narrow ? fault::option_out_of_range : fault::ranks_disagree,
                 narrow ? words : "") == "");

    auto const fault_in = [&, about = words](outcome const& heard, fault code) {
      return unlike(heard, narrow ? code : fault::none, narrow ? about : "");
    };
    oktopk::in_process::run(3, [&, wrong = rate](in_process_communicator comm) {
      scheme allreduce(execution(), comm, {.length = length});
      oktopk::sgd<scheme> optimizer(execution(), allreduce, {.learning_rate = 0.1});
      auto saved = optimizer.state();
      saved.learning_rate = wrong;
      CHECK(fault_in(outcome_of([&] { optimizer.restore(saved); }), fault::bad_state) == "");
      CHECK(optimizer.learning_rate() == (narrow ? 0.1 : wrong));
      CHECK(fault_in(outcome_of([&] { optimizer.set_learning_rate(wrong); }), fault::option_out_of_range) == "");
    });
  }
  auto const fine = outcomes_of(2, [&](in_process_communicator comm) {
    scheme allreduce(execution(), comm, {.length = length});
    oktopk::sgd<scheme> optimizer(execution(), allreduce, {.learning_rate = std::numeric_limits<TestType>::max()});
    optimizer.set_learning_rate(0);
    optimizer.set_learning_rate(-static_cast<double>(std::numeric_limits<TestType>::denorm_min()));
  });
  CHECK(unlike(fine, fault::none, "") == "");
}

} // namespace test_of_faults
