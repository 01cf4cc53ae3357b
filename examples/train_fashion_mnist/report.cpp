// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include "programs/pending_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

namespace fashion {

report::report(options const& how, run_facts facts)
    : how_(how), facts_(std::move(facts)),
      csv_("epoch,loss,accuracy,compute_seconds,selection_seconds,communication_seconds,"
           "words_per_iteration_mean,words_per_iteration_max,lower_bound_words,bound_words\n") {
}

void report::go_on_from(story const& before) {
  whole_ = before.whole;
  epochs_ = before.epochs;
  accuracy_ = before.accuracy;
  loss_ = before.loss;
  csv_.assign(before.csv.begin(), before.csv.end());
  seconds_before_ = before.seconds;
}

void report::heading() const {
  fmt::print("{} on {} rank(s): {} parameters", facts_.algorithm, facts_.ranks, facts_.length);
  if (facts_.selects) {
    // A scheme may have a density of its own.
    double const own = static_cast<double>(facts_.k) / static_cast<double>(facts_.length);
    bool const is_asked = std::abs(own - how_.density) * static_cast<double>(facts_.length) <= 1;
    fmt::print(", k = {} (density {:.4g})", facts_.k, is_asked ? how_.density : own);
  }
  fmt::print(", batch {} x {}, learning rate {:g}, seed {}\n", facts_.ranks, how_.batch, how_.learning_rate, how_.seed);
  fmt::print("                   |       seconds, mean of the ranks       | words sent per rank and iteration\n");
  fmt::print("epoch  loss  test  | computation  selection  communication  |      mean       max  {:>10}  {:>10}\n",
             facts_.selects ? "2k(P-1)/P" : "2n(P-1)/P", "bound");
  std::fflush(stdout);
}

void report::epoch(std::int64_t number, measurements const& of_ranks, double accuracy) {
  whole_.add(of_ranks);
  epochs_ = number;
  accuracy_ = accuracy;
  loss_ = of_ranks.mean_loss();
  fmt::print("{:5} {:.3f} {:5.2f} % | {:11.2f}  {:9.2f}  {:13.2f}  | {:9.0f} {:9.0f}  {:10.0f}  {:10.0f}\n", number,
             loss_, 100 * accuracy, of_ranks.compute_seconds, of_ranks.selection_seconds,
             of_ranks.communication_seconds, of_ranks.mean_words(), of_ranks.most_words, facts_.lower_bound_words,
             of_ranks.bound_words);
  std::fflush(stdout);
  csv_ += fmt::format("{},{:.6f},{:.4f},{:.4f},{:.4f},{:.4f},{:.1f},{:.0f},{:.1f},{:.1f}\n", number, loss_, accuracy,
                      of_ranks.compute_seconds, of_ranks.selection_seconds, of_ranks.communication_seconds,
                      of_ranks.mean_words(), of_ranks.most_words, facts_.lower_bound_words, of_ranks.bound_words);
}

void report::close(double total_seconds) const {
  fmt::print("{:.1f} s in all, the test after each epoch included", total_seconds);
  if (whole_.modelled) {
    fmt::print("; words are the least that MPI's allreduce can send, for its messages cannot be counted");
  } else if (whole_.over_bound == 0) {
    fmt::print("; no rank sent more than the bound in any of {} iterations", whole_.iterations);
  } else {
    fmt::print("; in {} of {} calls a rank sent more than the bound", whole_.over_bound,
               whole_.iterations * facts_.ranks);
  }
  fmt::print("\n");
  std::fflush(stdout);
  if (!how_.csv.empty()) {
    oktopk_programs::write_whole(how_.csv, csv_);
  }
  if (!how_.summary.empty()) {
    oktopk_programs::write_whole(how_.summary, summary(total_seconds));
  }
}

std::string report::summary(double total_seconds) const {
  std::string algorithm = facts_.algorithm;
  std::erase(algorithm, ' ');
  return fmt::format(
      "algorithm={} ranks={} epochs={} accuracy={:.4f} loss={:.4f} words_per_iteration_mean={:.0f} "
      "words_per_iteration_max={:.0f} lower_bound_words={:.0f} bound_words={:.0f} compute_seconds={:.2f} "
      "selection_seconds={:.2f} communication_seconds={:.2f} total_seconds={:.2f} iterations={} "
      "calls_over_bound={}\n",
      algorithm, facts_.ranks, epochs_, accuracy_, loss_, whole_.mean_words(), whole_.most_words,
      facts_.lower_bound_words, whole_.bound_words, whole_.compute_seconds, whole_.selection_seconds,
      whole_.communication_seconds, total_seconds, whole_.iterations, whole_.over_bound);
}

} // namespace fashion
