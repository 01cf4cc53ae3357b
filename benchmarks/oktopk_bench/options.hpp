// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk_bench {

/// What the command line asked for; an empty optional was not given.
struct options {
  std::vector<std::string> algorithms;
  std::optional<std::int64_t> length;
  std::vector<std::string> inputs;
  std::optional<double> density;
  std::optional<std::int64_t> k;
  std::optional<std::int64_t> steps;
  std::int64_t warmup = 0;
  std::string local_select = "exact";
  std::string global_select = "exact";
  std::string partition = "evened";
  std::optional<std::int64_t> tau;
  std::optional<std::int64_t> tau_prime;
  std::string codec; ///< empty: none
  std::optional<int> rate;
  std::optional<std::string> codec_level;
  std::uint64_t seed = 1;
  std::string csv;
  std::string dump;
  std::optional<int> in_process;
  bool verify = true;
  bool quality = false;

  /// Steps to measure: as asked for, or once through the input files, or ten.
  std::int64_t measured_steps() const;
  /// Entries to select out of `all`, as the library rounds a density.
  std::int64_t entries_of(std::int64_t all) const;
};

/// Whether an algorithm can code what it sends.
bool takes_codec(std::string_view algorithm);

/// What an algorithm is called in tables: by its name, and what it codes its messages with.
std::string label(std::string const& algorithm, options const& asked);

/// A command line read: what it asks for, a fault in one sentence, or the text of `--help`.
struct command_line {
  options asked;
  std::string fault;
  std::string help;
};

/// Reads the arguments (without the program's name) and says in one sentence what is wrong with them, if anything.
command_line read_command_line(std::vector<std::string> const& arguments,
                               std::span<std::string_view const> known_algorithms);

/// Every option as one line, the same on all ranks that were started alike.
std::string describe(options const& asked);

} // namespace oktopk_bench
