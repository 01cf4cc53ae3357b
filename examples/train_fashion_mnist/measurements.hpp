// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <mpi.h>

#include <cstdint>

namespace fashion {

/// What one rank saw over some iterations.
struct measurements {
  std::int64_t iterations = 0;
  double loss = 0; ///< sums over iterations, these and the following
  double compute_seconds = 0;
  double selection_seconds = 0;
  double communication_seconds = 0;
  double words = 0;            ///< sent
  double most_words = 0;       ///< in one iteration
  std::int64_t over_bound = 0; ///< iterations in which more words were sent than the upper bound

  void add(measurements const& other);

  /// Collective. Means over ranks of the sums, the maximum of `most_words`, and the sum of `over_bound`.
  measurements over_ranks(MPI_Comm comm) const;

  double mean_loss() const { return loss / static_cast<double>(iterations); }
  double mean_words() const { return words / static_cast<double>(iterations); }
};

} // namespace fashion
