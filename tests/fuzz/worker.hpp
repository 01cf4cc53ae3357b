// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"

namespace oktopk_fuzz {

/// What was done.
struct counts {
  std::int64_t cases = 0;
  std::int64_t calls = 0;      ///< on all ranks together each, of replicas too
  std::int64_t rank_calls = 0; ///< the same on each rank
  std::int64_t threw = 0;      ///< calls that threw as promised
  std::int64_t refusals = 0;   ///< objects and states that were refused as promised
};

struct case_result {
  verdict wrong;
  bool mutated = false; ///< whether the mutation could be put in
};

/// Runs a case of a subject on ranks of this process, and adds what it does. Puts in the mutation of this name.
case_result run_case(subject const& of, fuzz_case const& what, counts& done, std::string const& mutation = {});

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
  std::string on_purpose;             ///< name of a mutation
  std::vector<subject const*> chosen; ///< case i is of subject i modulo their number

  subject const& subject_of(std::uint64_t number) const { return *chosen[number % chosen.size()]; }
  fuzz_case drawn(std::uint64_t number) const {
    return draw_case(subject_of(number).about, seed, number, staged, within);
  }
};

/// How a worker ended.
struct work_done {
  verdict wrong;
  std::uint64_t at_case = 0; ///< the case with the finding
};

/// Runs cases in a process of its own, one after the other, until one has a finding: so a case that crashes, that a
/// sanitizer ends or that hangs is a finding like any other. `quiet`: what it complains of is not printed.
work_done work(plan const& all, double seconds, bool quiet = false);

/// What all workers have done.
counts const& work_in_all();

/// The command that runs a case again.
std::string command_of(plan const& all, std::uint64_t number);

/// Makes a case with a finding smaller for as long as the same promise is broken. Changes `found` to what is then
/// found, and gives the limits.
limits shrink(plan all, work_done& found);

} // namespace oktopk_fuzz
