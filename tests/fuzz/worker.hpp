// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/run_case.hpp"

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
  std::uint64_t cases = std::numeric_limits<std::int64_t>::max();
  double seconds = std::numeric_limits<double>::infinity();
  double case_seconds = 120; ///< of processor time, after which a case counts as hanging
  bool staged = false;
  bool shrinks = true; ///< whether cases with findings are made smaller
  limits within;
  mutation on_purpose = mutation::none;
  std::vector<facts> subjects; ///< case i is of subject i modulo their number

  facts const& subject_of(std::uint64_t number) const { return subjects[number % subjects.size()]; }
  fuzz_case drawn(std::uint64_t number) const { return draw_case(subject_of(number), seed, number, staged, within); }
};

/// How a worker ended.
struct work_done {
  counts done;
  verdict wrong;
  std::uint64_t at_case = 0; ///< the case with the finding
  int at_call = -1;
};

/// Runs cases in a process of its own, one after the other, until one has a finding: so a case that crashes, that a
/// sanitizer ends or that hangs is a finding like any other.
work_done work(plan const& all, double seconds, bool quiet);

/// The same in this process, for a debugger.
work_done work_here(plan const& all);

/// The command that runs a case again.
std::string command_of(plan const& all, std::uint64_t number);

/// Makes a case with a finding smaller for as long as the same promise is broken. Changes `found` to what is then
/// found, and gives the limits.
limits shrink(plan all, work_done& found);

} // namespace oktopk_fuzz
