// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/case.hpp"
#include "fuzz/draws.hpp"
#include "fuzz/facts.hpp"

#include <oktopk/comm/in_process/simulation.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace oktopk_simulate {

/// What is asked of the program.
struct plan {
  std::string program;
  std::uint64_t first = 0; ///< seed
  std::uint64_t seeds = 1000;
  bool faults = false;
  std::chrono::nanoseconds deadline = std::chrono::seconds(10); ///< time limit of every wait, in virtual time
  std::string only;                                             ///< part of the names of the algorithms to run
  bool verbose = false;
};

/// What a seed stands for: an algorithm with its policies and options, and what is put into it.
struct scenario {
  std::uint64_t seed = 0;
  oktopk_fuzz::facts const* about = nullptr;
  oktopk_fuzz::fuzz_case what;

  std::string text() const { return about->name + ": " + oktopk_fuzz::in_words(what); }
};

scenario draw_scenario(plan const& all, std::uint64_t seed);

/// Faults for a world in which each rank starts so many messages; none for one rank alone.
oktopk::in_process::fault_plan draw_faults(scenario const& of, std::vector<std::int64_t> const& messages,
                                           std::chrono::nanoseconds deadline);

/// Whether ranks wait for longer than the limit where this happens.
bool breaks(oktopk::in_process::planned_fault const& fault, std::chrono::nanoseconds deadline);

} // namespace oktopk_simulate
