// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"
#include "simulate/clocked.hpp"
#include "support/simulation.hpp"

namespace oktopk_simulate {

/// What is asked of the program.
struct plan {
  std::string program;
  std::uint64_t first = 0; ///< seed
  std::uint64_t seeds = 1000;
  bool faults = false;
  bool damage = false;  ///< also messages that are lost, doubled or changed, which only checked communicators notice
  bool checked = false; ///< over checked communicators
  bool clocks = false;  ///< each rank has a clock of its own, and the algorithm is `automatic`, which goes by it
  std::chrono::nanoseconds deadline = std::chrono::seconds(10); ///< time limit of every wait, in virtual time
  std::string only;                                             ///< part of the names of the algorithms to run
};

/// What a seed stands for: an algorithm with its policies and options, and what is put into it.
struct scenario {
  std::uint64_t seed = 0;
  oktopk_fuzz::subject const* of = nullptr;
  oktopk_fuzz::fuzz_case what;
  bool checked = false;
  std::vector<rank_speed> speeds{}; ///< of ranks with clocks of their own; else none
  bool measures = false;            ///< these measure the machine, which is given otherwise
  int restored_before = -1;         ///< call before which a new object goes on from a checkpoint

  bool has_clocks() const { return !speeds.empty(); }
};

scenario draw_scenario(plan const& all, std::uint64_t seed);

/// Faults for a world in which each rank starts so many messages; none for one rank alone.
oktopk::in_process::fault_plan draw_faults(plan const& all, scenario const& of,
                                           std::vector<std::int64_t> const& messages);

/// Whether it makes a message another one, or none, or two.
constexpr bool damages(oktopk::in_process::injected_fault what) {
  using oktopk::in_process::injected_fault;
  return what == injected_fault::loss || what == injected_fault::doubling || what == injected_fault::bit_flip;
}

/// What follows from a fault.
enum class consequence {
  none,     ///< nobody waits for too long
  possible, ///< an error, where somebody has a further message to expect of the same kind
  certain,  ///< an error on all that survive
};

consequence of_fault(oktopk::in_process::planned_fault const& fault, std::chrono::nanoseconds deadline);

struct counts {
  std::int64_t seeds = 0;
  std::int64_t calls = 0;   ///< simulated, on all ranks together each
  std::int64_t events = 0;  ///< choices of what comes next
  std::int64_t faulty = 0;  ///< runs in which a planned fault happened
  std::int64_t broken = 0;  ///< of these, runs in which the survivors heard of it
  std::int64_t resumed = 0; ///< of these, runs in which they made a further call
  std::int64_t changes = 0; ///< of the scheme of `automatic` from one call to the next
};

/// Runs what a seed stands for: once in turn, twice in other orders of events, and once with faults where asked. With
/// clocks, in one order, for another one gives other times. Adds what it does.
oktopk_fuzz::verdict run_seed(plan const& all, scenario const& of, counts& done);

} // namespace oktopk_simulate
