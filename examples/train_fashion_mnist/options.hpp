// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fashion {

/// Bits a value of a codec that has a rate, where nobody chooses.
inline constexpr std::int64_t default_rate = 8;

/// What the command line says.
struct options {
  std::string algorithm = "ok_topk";
  double density = 0.01;
  std::string codec;                ///< of the messages of a dense allreduce; empty for none
  std::optional<std::int64_t> rate; ///< bits a value, of a codec that has a rate
  std::string codec_level;          ///< "collective", which the empty one is as well, or "message"
  std::int64_t epochs = 5;
  std::int64_t batch = 64; ///< images per rank and iteration
  double learning_rate = 0.2;
  std::int64_t seed = 1; ///< at least 0
  std::filesystem::path data = "/usr/share/datasets/fashion-mnist";
  std::filesystem::path dump;        ///< folder for accumulators; empty for none
  std::vector<std::int64_t> dump_at; ///< iterations, counted from 1
  std::filesystem::path csv;         ///< one row per epoch; empty for none
  std::filesystem::path summary;     ///< one line of key=value; empty for none
  std::filesystem::path log;         ///< one row per iteration; empty for none
  std::string help;                  ///< the help text, where it was asked for; nothing else is to be done then

  /// The algorithm with its codec, in one word.
  std::string label() const;

  /// What must be the same on all ranks, in words.
  std::string shared_part() const;
};

/// Throws std::runtime_error with one sentence for an unknown option or a value out of range.
options parse_options(int argc, char const* const* argv, std::vector<std::string> const& algorithms);

} // namespace fashion
