// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/sgd.hpp>

#include <type_traits>

// What goes wrong in a step or a restore is an error on every rank and leaves weights and residual as they were.
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
template <class Allreduce>
struct training {
  using options = typename Allreduce::options;

  training(in_process_communicator comm, options const& how)
      : rank(comm.rank()), allreduce(execution(), comm, how), optimizer(execution(), allreduce, {.learning_rate = 0.1}),
        weights(to_view(std::vector<float>(length, 0.5F))) {}

  void step(int iteration) { optimizer.step(weights, as_input(gradient_of(rank, iteration))); }

  /// All that steps change, to the bit.
  auto everything() const { return std::pair(bits(to_vector(weights)), bits(to_vector(optimizer.residual()))); }

  int rank;
  Allreduce allreduce;
  oktopk::sgd<Allreduce> optimizer;
  Kokkos::View<float*, memory> weights;
};

using ok_topk = oktopk::ok_topk<execution, in_process_communicator>;
using dense = oktopk::dense<execution, in_process_communicator>;

ok_topk::options sparse_options() {
  return {.length = length, .k = 12, .partition = {.tau = 5}};
}

/// Something bad in the middle of a training, on all ranks at once; a twin never sees it. `bad(training)`.
template <class Allreduce, class Bad>
void check_untouched(int ranks, typename Allreduce::options const& how, fault code, std::string const& words,
                     Bad const& bad) {
  CAPTURE(ranks, words);
  for (int const bad_at : {0, 3, 4, 5}) {
    std::vector<failure> said(static_cast<std::size_t>(ranks));
    std::string trace; // that the fault has left
    auto const thrown = failures_of(ranks, [&](in_process_communicator comm) {
      training<Allreduce> touched(comm, how);
      training<Allreduce> twin(comm, how);
      for (int iteration = 0; iteration < 8; ++iteration) {
        if (iteration == bad_at) {
          auto const before = touched.everything();
          said[static_cast<std::size_t>(comm.rank())] = failure_of([&] { bad(touched); });
          if (touched.everything() != before || touched.optimizer.learning_rate() != 0.1) {
            trace = "something has changed";
          }
        }
        touched.step(iteration);
        twin.step(iteration);
        if (touched.everything() != twin.everything()) {
          trace = "the twin goes another way in iteration " + std::to_string(iteration);
        }
      }
    });
    CHECK(trace == "");
    CHECK(unlike(said, code, words) == "");
    CHECK(unlike(thrown, fault::none, "") == "");
  }
}

template <class Allreduce>
void check_bad_steps(int ranks, typename Allreduce::options const& how) {
  int const last = ranks - 1;
  std::string const who = "rank " + std::to_string(last) + ": ";
  check_untouched<Allreduce>(ranks, how, fault::non_finite, who + "the value at index 7 is not finite", [&](auto& on) {
    auto gradient = gradient_of(on.rank, 100);
    gradient[7] = on.rank == last ? std::numeric_limits<float>::quiet_NaN() : gradient[7];
    on.optimizer.step(on.weights, as_input(gradient));
  });
  check_untouched<Allreduce>(ranks, how, fault::length_mismatch,
                             who + "the accumulator has 1199 elements, expected 1200", [&](auto& on) {
                               std::vector<float> gradient(on.rank == last ? length - 1 : length, 1.0F);
                               on.optimizer.step(on.weights, as_input(gradient));
                             });
  check_untouched<Allreduce>(
      ranks, how, fault::length_mismatch, who + "the accumulator has 1201 elements, expected 1200", [&](auto& on) {
        auto const weights = on.rank == last ? to_view(std::vector<float>(length + 1)) : on.weights;
        on.optimizer.step(weights, as_input(gradient_of(on.rank, 100)));
      });
  check_untouched<Allreduce>(ranks, how, fault::length_mismatch,
                             "rank 0: the accumulator has 0 elements, expected 1200",
                             [&](auto& on) { on.optimizer.step(on.weights, as_input({})); });
}

template <class Allreduce>
void check_bad_states(int ranks, typename Allreduce::options const& how) {
  auto const restored = [](auto const& spoil) {
    return [spoil](auto& on) {
      auto saved = on.optimizer.state();
      spoil(saved, on.rank);
      on.optimizer.restore(saved);
    };
  };
  check_untouched<Allreduce>(ranks, how, fault::bad_state, "", restored([](auto& s, int) { s.residual.pop_back(); }));
  check_untouched<Allreduce>(ranks, how, fault::bad_state, "",
                             restored([](auto& s, int rank) { s.residual.resize(rank == 1 ? 3 : length); }));
  check_untouched<Allreduce>(ranks, how, fault::bad_state, "",
                             restored([](auto& s, int rank) { s.learning_rate = rank == 0 ? NAN : s.learning_rate; }));
  check_untouched<Allreduce>(ranks, how, fault::bad_state, "",
                             restored([](auto& s, int) { s.allreduce.iteration = -5; }));
  check_untouched<Allreduce>(ranks, how, fault::ranks_disagree, "",
                             restored([](auto& s, int rank) { s.allreduce.iteration += rank == 1 ? 1 : 0; }));
  check_untouched<Allreduce>(ranks, how, fault::ranks_disagree, "",
                             restored([](auto& s, int rank) { s.learning_rate *= rank == 1 ? 2 : 1; }));
}

} // namespace

TEST_CASE("a step that throws leaves weights and residual as they were, over ok_topk") {
  check_bad_steps<ok_topk>(1, sparse_options());
  check_bad_steps<ok_topk>(4, sparse_options());
}

TEST_CASE("a step that throws leaves weights and residual as they were, over dense") {
  check_bad_steps<dense>(3, {.length = length});
}

TEST_CASE("a bad state is an error on every rank and changes nothing, over ok_topk") {
  check_bad_states<ok_topk>(3, sparse_options());
}

TEST_CASE("a bad state is an error on every rank and changes nothing, over dense") {
  check_bad_states<dense>(3, {.length = length});
}

TEST_CASE("a learning rate that is not finite or differs between ranks is refused") {
  for (double const rate : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    auto const said = failures_of(3, [&](in_process_communicator comm) {
      dense allreduce(execution(), comm, {.length = length});
      oktopk::sgd<dense> const made_of_it(execution(), allreduce, {.learning_rate = comm.rank() == 1 ? rate : 0.1});
    });
    CHECK(unlike(said, fault::option_out_of_range, "the learning rate is not finite") == "");
  }
  auto const said = failures_of(3, [&](in_process_communicator comm) {
    dense allreduce(execution(), comm, {.length = length});
    oktopk::sgd<dense> const made_of_it(execution(), allreduce, {.learning_rate = comm.rank() == 2 ? 0.2 : 0.1});
  });
  CHECK(unlike(said, fault::ranks_disagree, "learning rate = 0.2") == "");

  oktopk::in_process::run(1, [&](in_process_communicator comm) {
    training<dense> some(comm, {.length = length});
    CHECK(failure_of([&] { some.optimizer.set_learning_rate(NAN); }).code == fault::option_out_of_range);
    CHECK(some.optimizer.learning_rate() == 0.1);
  });
}

TEMPLATE_TEST_CASE("a learning rate that is out of range for the values is refused by its name", "", float, double) {
  // What a float makes infinity or zero of, and a double not.
  constexpr bool narrow = std::is_same_v<TestType, float>;
  using scheme = oktopk::dense<execution, in_process_communicator, TestType>;
  struct bad_rate {
    double rate;
    std::string words;
  };
  for (auto const& [rate, words] : {bad_rate{1e300, "the learning rate 1e+300 is infinite as a float"},
                                    bad_rate{-3.5e38, "the learning rate -3.5e+38 is infinite as a float"},
                                    bad_rate{1e-60, "the learning rate 1e-60 is zero as a float"}}) {
    CAPTURE(rate);
    auto const made = failures_of(3, [&, wrong = rate](in_process_communicator comm) {
      scheme allreduce(execution(), comm, {.length = length});
      oktopk::sgd<scheme> const of_it(execution(), allreduce, {.learning_rate = comm.rank() == 1 ? wrong : 0.1});
    });
    // On one rank alone it is in any case another rate than the others'.
    CHECK(unlike(made, narrow ? fault::option_out_of_range : fault::ranks_disagree, narrow ? words : "") == "");

    std::vector<failure> set(3);
    std::vector<failure> restored(3);
    std::vector<double> kept(3);
    auto const thrown = failures_of(3, [&, wrong = rate](in_process_communicator comm) {
      scheme allreduce(execution(), comm, {.length = length});
      oktopk::sgd<scheme> optimizer(execution(), allreduce, {.learning_rate = 0.1});
      auto const rank = static_cast<std::size_t>(comm.rank());
      auto saved = optimizer.state();
      saved.learning_rate = wrong;
      restored[rank] = failure_of([&] { optimizer.restore(saved); });
      kept[rank] = optimizer.learning_rate();
      set[rank] = failure_of([&] { optimizer.set_learning_rate(wrong); });
    });
    CHECK(unlike(thrown, fault::none, "") == "");
    CHECK(unlike(set, narrow ? fault::option_out_of_range : fault::none, narrow ? words : "") == "");
    CHECK(unlike(restored, narrow ? fault::bad_state : fault::none, narrow ? words : "") == "");
    CHECK(kept == std::vector<double>(3, narrow ? 0.1 : rate));
  }
  auto const fine = failures_of(2, [&](in_process_communicator comm) {
    scheme allreduce(execution(), comm, {.length = length});
    oktopk::sgd<scheme> optimizer(execution(), allreduce, {.learning_rate = std::numeric_limits<TestType>::max()});
    optimizer.set_learning_rate(0);
    optimizer.set_learning_rate(-static_cast<double>(std::numeric_limits<TestType>::denorm_min()));
  });
  CHECK(unlike(fine, fault::none, "") == "");
}
