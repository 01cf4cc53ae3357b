// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"
#include "simulate/scenario.hpp"

#include <cstdint>
#include <string>

namespace oktopk_simulate {

struct counts {
  std::int64_t seeds = 0;
  std::int64_t calls = 0;   ///< simulated, on all ranks together each
  std::int64_t events = 0;  ///< choices of what comes next
  std::int64_t faulty = 0;  ///< runs in which a planned fault happened
  std::int64_t broken = 0;  ///< of these, runs in which the survivors had to hear of it
  std::int64_t resumed = 0; ///< of these, runs in which they made a further call

  counts& operator+=(counts const& other) {
    seeds += other.seeds;
    calls += other.calls;
    events += other.events;
    faulty += other.faulty;
    broken += other.broken;
    resumed += other.resumed;
    return *this;
  }
};

struct seed_result {
  oktopk_fuzz::verdict wrong;
  std::string faults; ///< that were planned, in words
  counts done;
};

/// Runs what a seed stands for: once in turn, twice in other orders of events, and once with faults where asked.
seed_result run_seed(plan const& all, scenario const& of);

} // namespace oktopk_simulate
