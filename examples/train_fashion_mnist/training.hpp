// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithms.hpp"
#include "dataset.hpp"
#include "options.hpp"

#include <mpi.h>

#include <cstddef>
#include <tuple>
#include <utility>

// The training is compiled for every algorithm, in as many parts as CMake says, so that compilers work side by side.
namespace fashion {

/// What a run works with.
struct training {
  execution const& exec;
  communicator const& comm;
  MPI_Comm world;
  options const& how;
  rank_data const& data;
};

/// Collective. Trains if the algorithm asked for is one of this part; in training_part.cpp.
template <std::size_t Part>
void train_part(training const& run);

/// Collective. Trains with the textbook's allreduce that the options name; in training_textbook.cpp.
void train_textbook(training const& run);

/// Collective. Trains with the algorithm that the options name, which must be one of `algorithm_names()`.
inline void train(training const& run) {
  if (is_textbook(run.how.algorithm)) {
    train_textbook(run);
    return;
  }
  [&run]<std::size_t... Part>(std::index_sequence<Part...>) {
    (train_part<Part>(run), ...);
  }(std::make_index_sequence<FASHION_TRAINING_PARTS>());
}

} // namespace fashion
