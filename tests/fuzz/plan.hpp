// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "fuzz/sabotage.hpp"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace oktopk_fuzz {

/// What is asked of the program.
struct plan {
  std::string program;
  std::uint64_t seed = 1;
  std::uint64_t first = 0; ///< number of the first case
  std::uint64_t cases = std::numeric_limits<std::uint64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  double case_seconds = 120; ///< of processor time, after which a case counts as hanging
  bool staged = false;
  bool shrinks = true; ///< whether cases with findings are made smaller
  limits within;
  sabotage on_purpose = sabotage::none;
  std::vector<facts> subjects; ///< case i is of subject i modulo their number

  facts const& subject_of(std::uint64_t number) const { return subjects[number % subjects.size()]; }
};

/// The command that runs a case again.
std::string command_of(plan const& all, std::uint64_t number, limits const& within);

} // namespace oktopk_fuzz
