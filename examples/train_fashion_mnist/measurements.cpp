// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "measurements.hpp"

#include <algorithm>
#include <array>

namespace fashion {

void measurements::add(measurements const& other) {
  iterations += other.iterations;
  loss += other.loss;
  compute_seconds += other.compute_seconds;
  selection_seconds += other.selection_seconds;
  communication_seconds += other.communication_seconds;
  words += other.words;
  most_words = std::max(most_words, other.most_words);
  bound_words = std::max(bound_words, other.bound_words);
  over_bound += other.over_bound;
  modelled = modelled || other.modelled;
}

measurements measurements::over_ranks(MPI_Comm comm) const {
  int ranks = 1;
  MPI_Comm_size(comm, &ranks);
  std::array<double, 5> means{loss, compute_seconds, selection_seconds, communication_seconds, words};
  MPI_Allreduce(MPI_IN_PLACE, means.data(), static_cast<int>(means.size()), MPI_DOUBLE, MPI_SUM, comm);
  for (double& mean : means) {
    mean /= ranks;
  }
  measurements all{iterations, means[0],   means[1],    means[2],   means[3],
                   means[4],   most_words, bound_words, over_bound, modelled};
  std::array<double, 2> maxima{most_words, bound_words};
  MPI_Allreduce(MPI_IN_PLACE, maxima.data(), static_cast<int>(maxima.size()), MPI_DOUBLE, MPI_MAX, comm);
  all.most_words = maxima[0];
  all.bound_words = maxima[1];
  MPI_Allreduce(MPI_IN_PLACE, &all.over_bound, 1, MPI_INT64_T, MPI_SUM, comm);
  return all;
}

} // namespace fashion
