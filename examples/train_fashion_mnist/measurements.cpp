// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "measurements.hpp"

#include <oktopk/comm/collectives.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

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

measurements measurements::over_ranks(oktopk::mpi_communicator& world) const {
  std::array<double, 5> means{loss, compute_seconds, selection_seconds, communication_seconds, words};
  world.allreduce(std::span<double>(means), oktopk::reduction::sum, oktopk::phase::control);
  for (double& mean : means) {
    mean /= world.size();
  }
  measurements all{iterations, means[0],   means[1],    means[2],   means[3],
                   means[4],   most_words, bound_words, over_bound, modelled};
  std::array<double, 2> maxima{most_words, bound_words};
  world.allreduce(std::span<double>(maxima), oktopk::reduction::max, oktopk::phase::control);
  all.most_words = maxima[0];
  all.bound_words = maxima[1];
  oktopk::collective_workspace workspace;
  oktopk::allreduce_integers(world, std::span(&all.over_bound, 1), oktopk::reduction::sum, oktopk::phase::control,
                             workspace);
  return all;
}

} // namespace fashion
