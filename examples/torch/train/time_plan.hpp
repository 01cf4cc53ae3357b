// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace torch_training {

/// Makes a run last a given time in all, of which evaluations of the test data, and xi, take a tenth at most.
///
/// After the iterations that `asks_at` names, `update` is told how long things took, with the same numbers on all
/// ranks, and says whether there is a row and how many parts of the test data it evaluates: the same number in all
/// rows, but in the last one all where they fit. Rows that do not fit into the tenth are left out.
class time_plan {
public:
  /// What has taken how many seconds so far.
  struct spent {
    double elapsed = 0;    ///< in all
    double training = 0;   ///< in steps
    double evaluating = 0; ///< in evaluations
    double part = 0;       ///< in the evaluation of one part of the test data, as measured last
    double beside = 0;     ///< in what a row has besides, xi, as measured last
  };

  struct decision {
    bool row = false;
    bool last = false; ///< of the run
    std::int64_t parts = 0;
  };

  /// `every`: iterations between two rows; 0 for about twenty rows. `parts`: of the test data.
  time_plan(double seconds, std::int64_t every, std::int64_t parts)
      : seconds_(seconds), budget_(seconds / 10), every_(every), parts_(parts) {}

  bool asks_at(std::int64_t iteration) const { return iteration >= next_question_; }

  decision update(std::int64_t iteration, spent const& now) {
    if (iteration == 1) {
      first_step_ = now.training; // which is slower than the others
    }
    double const step =
        iteration > 1 ? (now.training - first_step_) / static_cast<double>(iteration - 1) : now.training;
    double const all = static_cast<double>(parts_) * now.part + now.beside;
    if (iteration > 1 && sample_ == 0) {
      choose_sample(iteration, step, all, now);
    }
    double const row = static_cast<double>(std::max<std::int64_t>(sample_, 1)) * now.part + now.beside;
    double const end = ends_with_all_ ? all : row;
    double rows = (budget_ - now.evaluating - end) / row;
    bool const due = sample_ > 0 && iteration >= next_row_ && rows >= 1;
    rows -= due ? 1 : 0;
    double const time_left = seconds_ - now.elapsed - end - (due ? row : 0);
    auto const left = std::max<std::int64_t>(0, whole(time_left / step));
    last_row_ = due ? iteration : last_row_;
    std::int64_t const between = rows < 1 ? left + 1 : whole(std::ceil(static_cast<double>(left) / rows));
    next_row_ = sample_ > 0 ? std::max(iteration + 1, last_row_ + std::max(every_, between)) : iteration + 1;
    next_question_ = std::min(iteration + std::max<std::int64_t>(1, left / 2), next_row_);
    bool const last = left == 0;
    bool const all_fits = now.elapsed + all <= seconds_ && now.evaluating + all <= budget_;
    return {due || last, last, last && all_fits ? parts_ : std::max<std::int64_t>(sample_, 1)};
  }

private:
  static constexpr double usual_rows = 20;

  static std::int64_t whole(double number) { return static_cast<std::int64_t>(std::min(number, 1e15)); }

  void choose_sample(std::int64_t iteration, double step, double all, spent const& now) {
    double const left = std::max(0.0, 0.9 * (seconds_ - now.elapsed) / step);
    double const iterations = static_cast<double>(iteration) + left;
    every_ = every_ > 0 ? every_ : std::max<std::int64_t>(1, whole(std::ceil(iterations / usual_rows)));
    next_row_ = every_;
    ends_with_all_ = all <= budget_ / 2;
    double const available = budget_ - now.evaluating - (ends_with_all_ ? all : 0);
    double const of_a_row = available / std::max(1.0, iterations / static_cast<double>(every_));
    sample_ = std::clamp<std::int64_t>(whole(std::max(0.0, (of_a_row - now.beside) / now.part)), 1, parts_);
  }

  double seconds_;
  double budget_;
  std::int64_t every_;
  std::int64_t parts_;
  double first_step_ = 0;
  bool ends_with_all_ = false;
  std::int64_t sample_ = 0; ///< parts of the test data in a row; 0 until it is chosen
  std::int64_t last_row_ = 0;
  std::int64_t next_row_ = 0;
  std::int64_t next_question_ = 1;
};

} // namespace torch_training
