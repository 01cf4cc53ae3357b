// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "programs/options.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace torch_training {

/// The requests of the command line. Zeros stand for the workload's own choice.
struct options {
  std::string workload = "vgg16"; ///< vgg16, lstm or bert
  std::string algorithm =
      "ok_topk";               ///< of the catalogue; with "+overlap" behind it, in buckets while the backward pass runs
  double size = 1;             ///< factor of the network's widths
  std::int64_t batch = 0;      ///< examples of a rank and iteration
  std::int64_t iterations = 0; ///< none where minutes count
  double minutes = 0;          ///< of the run in all
  std::int64_t every = 0;      ///< iterations between two rows; 0 with minutes: about twenty rows
  double density = 0;
  double learning_rate = 0;
  double momentum = -1; ///< less than 0: the workload's own
  double clip_norm = -1;
  std::int64_t warm_up = 0; ///< iterations from dense to the density
  double bucket_mib = 0;    ///< of a bucket with "+overlap"
  std::int64_t seed = 1;
  double deadline = oktopk_programs::usual_deadline; ///< in seconds; 0 for none
  bool xi = false;                                   ///< measures xi in each row
  std::filesystem::path images = "/usr/share/datasets/fashion-mnist";
  std::filesystem::path text;   ///< a text file for lstm and bert
  std::int64_t words = 10'000;  ///< most of the vocabulary; rarer ones are one
  std::filesystem::path csv;    ///< one row each `every` iterations; empty for none
  std::filesystem::path course; ///< one row each iteration, at once; empty for none
  std::string to_print;         ///< in place of a run (`--help`, `--list`)

  /// The algorithm without "+overlap".
  std::string scheme() const;
  bool overlaps() const;
  /// The part that must be the same on all ranks, in words.
  std::string shared_part() const;
};

/// Throws std::runtime_error with one sentence for an unknown option or a value out of range.
options parse_options(std::vector<std::string> const& arguments);

} // namespace torch_training
