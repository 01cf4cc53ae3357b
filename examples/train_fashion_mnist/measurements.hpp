// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/mpi.hpp>

#include <cstdint>

namespace fashion {

/// What one rank saw over some iterations.
struct measurements {
  std::int64_t iterations = 0;
  double loss = 0; ///< sums over iterations, these and the following
  double compute_seconds = 0;
  double selection_seconds = 0;
  double communication_seconds = 0;
  double words = 0;       ///< sent
  double most_words = 0;  ///< in one iteration
  double bound_words = 0; ///< the algorithm's own bound of an iteration, which may go with its selection; the largest
  std::int64_t over_bound = 0; ///< iterations in which more words were sent than that bound
  bool modelled = false;       ///< the communicator hid its messages: words are the least that it can have sent

  void add(measurements const& other);

  /// For checkpoints.
  template <class State, class Visit>
  static void each_part(State& state, Visit& visit) {
    visit(state.iterations);
    for (auto* const number : {&state.loss, &state.compute_seconds, &state.selection_seconds,
                               &state.communication_seconds, &state.words, &state.most_words, &state.bound_words}) {
      visit(*number);
    }
    visit(state.over_bound);
    visit(state.modelled);
  }

  /// Collective. Means over ranks of the sums, the maxima of `most_words` and `bound_words`, and the sum of
  /// `over_bound`.
  measurements over_ranks(oktopk::mpi_communicator& world) const;

  double mean_loss() const { return loss / static_cast<double>(iterations); }
  double mean_words() const { return words / static_cast<double>(iterations); }
};

} // namespace fashion
