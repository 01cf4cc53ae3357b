// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/bad_accumulators.hpp"
#include "algorithm/continuation.hpp"
#include "algorithm/invariants.hpp"
#include "algorithm/special_inputs.hpp"
#include "support/catch.hpp"
#include "support/emulated.hpp"

// What every algorithm and every policy must pass. A new one: a subject (see record.hpp) and test cases that call
// these.
namespace oktopk_tests {

/// Conservation, agreement of all ranks, the volume bound whatever comes, and the reference where there is one.
template <class Subject>
void check_invariants() {
  SECTION("whole numbers, whose sums are exact") {
    for (int const ranks : affordable_rank_counts()) {
      CAPTURE(ranks);
      shape const what{230, 23, 11};
      auto const once = run<Subject>(ranks, what, whole_numbers{1, 7});
      CHECK(run_fault<Subject>(once, what, true) == "");
      CHECK(repetition_fault(once, run<Subject>(ranks, what, whole_numbers{1, 7})) == "");
    }
  }
  SECTION("real numbers") {
    for (int const ranks : affordable_rank_counts()) {
      CAPTURE(ranks);
      shape const what{2600, 37, 11}; // long enough for selectors that guess
      auto const once = run<Subject>(ranks, what, correlated{3, 8});
      CHECK(run_fault<Subject>(once, what, false) == "");
      CHECK(repetition_fault(once, run<Subject>(ranks, what, correlated{3, 8})) == "");
    }
  }
  SECTION("special inputs") {
    for (int const ranks : affordable_rank_counts()) {
      CHECK(special_input_fault<Subject>(ranks) == "");
    }
  }
}

/// Bad accumulators are the same error on every rank, and leave no trace.
template <class Subject>
void check_bad_accumulators() {
  SECTION("each kind before each iteration") {
    for (int const ranks : {1, 2, 3, 5, 8}) {
      CHECK(bad_accumulator_fault<Subject>(ranks, {90, 9, 6}) == "");
    }
  }
  SECTION("with accumulators long enough for selectors that guess") {
    CHECK(bad_accumulator_fault<Subject>(3, {2500, 20, 6}) == "");
  }
  SECTION("nothing to select") {
    CHECK(bad_accumulator_fault<Subject>(3, {90, 0, 2}) == "");
  }
  SECTION("no length") {
    for (int const ranks : {1, 2, 3, 5}) {
      for (int bad_rank = 0; bad_rank < ranks; ++bad_rank) {
        auto const said = failures_of(ranks, [&](oktopk::in_process_communicator comm) {
          algorithm_of<Subject> allreduce = made<Subject>(comm, 0, 0);
          std::size_t const size = comm.rank() == bad_rank ? 3 : 0;
          hand_over(allreduce, {std::vector<typename Subject::value_type>(size)});
        });
        CHECK(unlike(said, oktopk::fault::length_mismatch,
                     "rank " + std::to_string(bad_rank) + ": the accumulator has 3 elements, expected 0") == "");
      }
    }
  }
  SECTION("a sum that overflows") {
    for (int const ranks : {2, 3, 5, 8}) {
      CHECK(overflow_fault<Subject>(ranks, {90, 9, 1}) == "");
    }
  }
}

/// State can be saved and restored; a bad one is the same error on every rank.
template <class Subject>
void check_continuation() {
  shape const what{120, 12, 11};
  SECTION("from every iteration") {
    for (int const ranks : {1, 3, 4, 8}) {
      CHECK(continuation_fault<Subject>(ranks, what) == "");
    }
    CHECK(continuation_fault<Subject>(3, {2600, 26, 11}) == "");
  }
  SECTION("a negative iteration") {
    auto const spoil = [](auto& state, int, int) { state.iteration = -1; };
    CHECK(bad_state_fault<Subject>(3, what, spoil, oktopk::fault::bad_state) == "");
  }
  SECTION("a negative iteration on one rank") {
    auto const spoil = [](auto& state, int rank, int) { state.iteration = rank == 1 ? -1 : state.iteration; };
    CHECK(bad_state_fault<Subject>(3, what, spoil, oktopk::fault::bad_state) == "");
  }
  SECTION("an iteration that nobody could go on from") {
    auto const spoil = [](auto& state, int, int) { state.iteration = std::numeric_limits<std::int64_t>::max(); };
    CHECK(bad_state_fault<Subject>(3, what, spoil, oktopk::fault::bad_state) == "");
  }
  SECTION("another iteration on one rank") {
    auto const spoil = [](auto& state, int rank, int ranks) { state.iteration += rank == ranks - 1 ? 1 : 0; };
    CHECK(bad_state_fault<Subject>(3, what, spoil, oktopk::fault::ranks_disagree) == "");
  }
}

/// All of the above.
template <class Subject>
void check_algorithm() {
  SECTION("it keeps the invariants") {
    check_invariants<Subject>();
  }
  SECTION("it refuses bad accumulators") {
    check_bad_accumulators<Subject>();
  }
  SECTION("it goes on from a saved state") {
    check_continuation<Subject>();
  }
}

/// With selections drawn evenly over the index the documented bound holds on every call, however thresholds and regions
/// come of age, while gradients drift and when they jump. `counts` tells which calls the bound is promised for.
/// `used` is the part of the bound that must really be sent by somebody: what is counted is the whole of it.
template <class Subject, class Counts>
void check_bound(int ranks, shape what, correlated const& gradient, Counts const& counts, double used = 0.4) {
  CAPTURE(ranks);
  auto const all = run<Subject>(ranks, what, gradient);
  double most = 0;
  for (auto const& rank : all) {
    for (auto const& call : rank) {
      if (counts(call)) {
        most = std::max(most, call.total().words_sent());
      }
    }
  }
  CHECK(most <= all[0][0].bound_words);
  CHECK(most >= (ranks == 1 ? 0 : used * all[0][0].bound_words));
}

template <class Subject>
void check_bound(double used = 0.4) {
  for (int const ranks : {1, 2, 3, 4, 7, 16}) {
    check_bound<Subject>(
        ranks, {20000, 1000, 12}, correlated{17, 6}, [](auto const&) { return true; }, used);
  }
}

} // namespace oktopk_tests
