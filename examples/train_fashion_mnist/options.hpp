// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "programs/options.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fashion {

/// The requests of the command line.
struct options {
  std::string algorithm = "ok_topk"; ///< as the library's catalogue reads it
  double density = 0.01;
  std::int64_t epochs = 5;
  std::int64_t batch = 64; ///< images per rank and iteration
  double learning_rate = 0.2;
  std::int64_t seed = 1;                             ///< at least 0
  double deadline = oktopk_programs::usual_deadline; ///< in seconds; 0 for none
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  std::filesystem::path dump;        ///< folder for accumulators; empty for none
  std::vector<std::int64_t> dump_at; ///< iterations, counted from 1
  std::filesystem::path csv;         ///< one row per epoch; empty for none
  std::filesystem::path summary;     ///< one line of key=value; empty for none
  std::filesystem::path log;         ///< one row per iteration; empty for none
  std::filesystem::path course;      ///< one row per iteration, at once; empty for none
  std::filesystem::path checkpoint;  ///< to go on from, and to write; empty for none
  std::int64_t every = 0;            ///< iterations between two checkpoints; 0: once an epoch
  std::string text;                  ///< to print in place of a run (`--help`, `--list`, `--version`)

  /// The part that must be the same on all ranks, in words.
  std::string shared_part() const;

  /// The part that a training that goes on must have as the one that was interrupted, in words.
  std::string training_part() const;
};

/// Throws std::runtime_error with one sentence for an unknown option or a value out of range.
options parse_options(std::vector<std::string> const& arguments);

/// The text of `--list`.
std::string list_text();

} // namespace fashion
