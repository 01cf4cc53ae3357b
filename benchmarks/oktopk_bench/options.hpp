// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "programs/options.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oktopk_bench {

/// The requests of a command line; an empty optional was not given.
struct options {
  std::vector<std::string> algorithms; ///< as the catalogue reads them
  std::optional<std::int64_t> length;
  std::vector<std::string> inputs;
  std::optional<double> density;
  std::optional<std::int64_t> k;
  std::optional<std::int64_t> steps;
  std::int64_t warmup = 0;
  std::uint64_t seed = 1;
  std::string operation = "allreduce";
  std::string skew = "zipf"; ///< of entries, for the operation `sparse_sum`
  std::int64_t width = 1;    ///< of its rows
  std::string csv;
  std::string dump;
  std::optional<int> in_process;
  double deadline = oktopk_programs::usual_deadline; ///< in seconds; 0 for none
  bool checked = false;
  bool over_tcp = false;
  bool verify = true;
  bool quality = false;
  bool control = false;

  /// Steps to measure: as asked for, or once through the input files, or ten.
  std::int64_t measured_steps() const;
  /// Entries to select out of `all`, as the library rounds a density.
  std::int64_t entries_of(std::int64_t all) const;
};

/// A command line read: what it asks for, a fault in one sentence, or a text to print in place of a run (`--help`,
/// `--list`, `--version`).
struct command_line {
  options asked;
  std::string fault;
  std::string text;
  std::string line; ///< the arguments, for the ranks to compare
};

/// Reads the arguments (without the program's name); `list` is the text of `--list`.
command_line read_command_line(std::vector<std::string> const& arguments, std::string const& list);

} // namespace oktopk_bench
