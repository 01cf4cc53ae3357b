// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "measurements.hpp"
#include "options.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace fashion {

/// What a run is about, for its heading and its bounds.
struct run_facts {
  std::string algorithm;
  int ranks = 1;
  std::int64_t length = 0;
  bool selects = false;         ///< whether a part of the gradient is exchanged, or all of it
  std::int64_t k = 0;           ///< entries selected; the length where all are
  double lower_bound_words = 0; ///< that any algorithm must send for k entries of 4 bytes: 2k(P-1)/P
};

/// Prints the table of a run as it goes and writes its files at the end. To be used on one rank.
class report {
public:
  report(options const& how, run_facts facts);

  void heading() const;

  /// `of_ranks` is what `over_ranks` gave; `accuracy` the share of test images that were labelled correctly.
  void epoch(std::int64_t number, measurements const& of_ranks, double accuracy);

  /// The closing lines; then the files that were asked for. Throws std::runtime_error.
  void close(double total_seconds) const;

  /// The report of the epochs so far, for checkpoints.
  struct story {
    measurements whole;
    std::int64_t epochs = 0;
    double accuracy = 0;
    double loss = 0;
    std::vector<char> csv;
    double seconds = 0;

    template <class State, class Visit>
    static void each_part(State& state, Visit& visit) {
      measurements::each_part(state.whole, visit);
      visit(state.epochs);
      visit(state.accuracy);
      visit(state.loss);
      visit(state.csv);
      visit(state.seconds);
    }
  };

  story history(double seconds) const {
    return {whole_, epochs_, accuracy_, loss_, {csv_.begin(), csv_.end()}, seconds};
  }
  double seconds_before() const { return seconds_before_; } ///< of runs that this one goes on with
  void go_on_from(story const& before);

private:
  std::string summary(double total_seconds) const;

  options how_;
  run_facts facts_;
  measurements whole_;
  std::int64_t epochs_ = 0;
  double accuracy_ = 0;
  double loss_ = 0;
  std::string csv_;
  double seconds_before_ = 0;
};

} // namespace fashion
