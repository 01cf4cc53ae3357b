// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace select_bench {

/// The command line of select_bench, read and checked.
struct options {
  std::vector<std::int64_t> lengths = {1'000'000, 14'728'266, 27'569'568, 133'547'324};
  std::vector<double> densities = {0.001, 0.01, 0.02};
  std::vector<std::string> inputs = {"normal", "heavy_tailed"}; ///< names of distributions, or files
  std::vector<std::string> selectors;                           ///< all when empty
  std::string csv;
  int repetitions = 15;
  int processes = 1;
};

struct command_line {
  options asked;
  std::string fault; ///< what is wrong with it
  std::string help;  ///< not empty where that was asked for
};

command_line read_command_line(std::vector<std::string> const& arguments, std::span<std::string_view const> selectors);

} // namespace select_bench
