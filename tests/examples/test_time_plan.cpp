// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "../../examples/torch/train/time_plan.hpp"

#include "support/catch.hpp"

#include <set>

using torch_training::time_plan;

namespace {

/// A machine on which everything takes the same time again and again.
struct machine {
  double seconds; ///< that the run may take
  double reading; ///< seconds until the first step
  double first;   ///< of the first step
  double step;    ///< of each other
  double part;    ///< of the evaluation of one part of the test data
  std::int64_t parts = 100;
  double beside = 0; ///< in each row besides
};

struct run {
  double seconds = 0;
  double evaluating = 0;
  std::int64_t iterations = 0;
  std::int64_t questions = 0;
  std::vector<std::int64_t> rows;  ///< their iterations
  std::vector<std::int64_t> parts; ///< that each evaluates
};

run of(machine const& on, std::int64_t every = 0, double slower_from_half = 1) {
  time_plan plan(on.seconds, every, on.parts);
  run made;
  time_plan::spent now{.elapsed = on.reading, .training = 0, .evaluating = 0, .part = on.part, .beside = on.beside};
  for (bool last = false; !last;) {
    ++made.iterations;
    double const takes =
        (made.iterations == 1 ? on.first : on.step) * (now.elapsed > on.seconds / 2 ? slower_from_half : 1);
    now.training += takes;
    now.elapsed += takes;
    if (!plan.asks_at(made.iterations)) {
      continue;
    }
    ++made.questions;
    if (made.questions == 1) { // how the time of a part is measured
      now.evaluating += on.part + on.beside;
      now.elapsed += on.part + on.beside;
    }
    auto const decided = plan.update(made.iterations, now);
    if (decided.row) {
      made.rows.push_back(made.iterations);
      made.parts.push_back(decided.parts);
      double const row = static_cast<double>(decided.parts) * on.part + on.beside;
      now.evaluating += row;
      now.elapsed += row;
    }
    last = decided.last;
  }
  made.seconds = now.elapsed;
  made.evaluating = now.evaluating;
  return made;
}

/// The last row apart, which may have all.
std::set<std::int64_t> sizes(run const& made) {
  return {made.parts.begin(), made.parts.end() - 1};
}

} // namespace

TEST_CASE("a run takes the time that it was given, evaluations a tenth of it at most") {
  for (double const part : {0.0001, 0.01, 0.1, 0.6}) {
    for (double const step : {0.01, 0.1, 2.0}) {
      for (std::int64_t const every : {0, 1, 10}) {
        CAPTURE(part, step, every);
        run const made = of({.seconds = 120, .reading = 3, .first = 3 * step, .step = step, .part = part}, every);
        CHECK(made.seconds <= 120 + step);
        CHECK(made.seconds >= 120 - 2 * step - 12);
        CHECK(made.evaluating <= 12 + 1e-9);
        CHECK(made.rows.back() == made.iterations);
        CHECK(sizes(made).size() <= 1);
        CHECK(made.rows.size() >= 2);
      }
    }
  }
}

TEST_CASE("about twenty rows unless told otherwise") {
  run const made = of({.seconds = 120, .reading = 1, .first = 0.3, .step = 0.1, .part = 0.01});
  CHECK(made.rows.size() >= 17);
  CHECK(made.rows.size() <= 24);
  CHECK(made.questions < 60);
}

TEST_CASE("all test data are evaluated where they are cheap, and at the end where that fits") {
  run const cheap = of({.seconds = 120, .reading = 1, .first = 0.1, .step = 0.1, .part = 0.001});
  CHECK(sizes(cheap) == std::set<std::int64_t>{100});
  run const dear = of({.seconds = 120, .reading = 1, .first = 0.1, .step = 0.1, .part = 0.04});
  CHECK(*sizes(dear).begin() < 100);
  CHECK(dear.parts.back() == 100); // 4 s of 12
  run const too_dear = of({.seconds = 120, .reading = 1, .first = 0.1, .step = 0.1, .part = 0.2});
  CHECK(too_dear.parts.back() == *sizes(too_dear).begin());
}

TEST_CASE("rows that a tenth of the time does not pay for are left out") {
  run const made = of({.seconds = 60, .reading = 1, .first = 0.1, .step = 0.1, .part = 1}, 1);
  CHECK(made.evaluating <= 6);
  CHECK(made.rows.size() >= 2);
  CHECK(made.rows.size() <= 6);
}

TEST_CASE("what a row has besides the test data counts as the tenth, too") {
  for (double const beside : {0.01, 0.1, 1.0}) {
    for (std::int64_t const every : {0, 1}) {
      CAPTURE(beside, every);
      run const made =
          of({.seconds = 120, .reading = 1, .first = 0.1, .step = 0.1, .part = 0.01, .beside = beside}, every);
      CHECK(made.evaluating <= 12 + 1e-9);
      CHECK(made.evaluating > 6);
      CHECK(made.rows.size() >= 5);
      CHECK(made.rows[made.rows.size() / 2] > made.iterations / 4); // they are spread over the run
      CHECK(made.seconds <= 120 + 0.1 + 1e-9);
      CHECK(made.seconds > 117);
    }
  }
}

TEST_CASE("a row has fewer parts where it has more besides, and there are about twenty still") {
  run const made = of({.seconds = 120, .reading = 1, .first = 0.1, .step = 0.1, .part = 0.01, .beside = 0.3});
  CHECK(made.rows.size() >= 17);
  CHECK(*sizes(made).begin() < 40);
}

TEST_CASE("a run that becomes slower still ends in time") {
  run const made = of({.seconds = 60, .reading = 1, .first = 1, .step = 0.5, .part = 0.01}, 0, 3);
  CHECK(made.seconds <= 60 + 1.5);
  CHECK(made.seconds >= 60 - 9);
}

TEST_CASE("what takes longer than the run has one step and one row") {
  run const made = of({.seconds = 1, .reading = 5, .first = 3, .step = 3, .part = 0.1});
  CHECK(made.iterations == 1);
  CHECK(made.rows == std::vector<std::int64_t>{1});
  CHECK(made.parts == std::vector<std::int64_t>{1});
}
