// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/record.hpp"
#include "simulate/automatic/clocked.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace oktopk_simulate {

/// What one rank does wrong, once.
enum class mistake : std::uint8_t {
  none,
  not_a_number,  ///< in its gradient
  infinite,      ///< in its gradient
  wrong_length,  ///< of its gradient
  other_k,       ///< from `set_k`
  other_options, ///< than all others, at the beginning
};

/// What a seed stands for: ranks of different speeds, a network that changes, and what goes wrong.
struct automatic_scenario {
  std::uint64_t seed = 0;
  int ranks = 2;
  int calls = 0;
  automatic_allreduce::options how;
  bool measures = false; ///< the ranks measure the machine, which is given otherwise
  std::vector<rank_speed> speeds;
  int new_k_before = -1;
  int restored_before = -1; ///< call before which a new object goes on from the state
  mistake wrong = mistake::none;
  int wrong_rank = 0;
  int wrong_call = 0;
  bool has_fault = false; ///< a rank dies or stops, or a message is late, lost, doubled or changed

  std::string text() const;
};

automatic_scenario draw_automatic(std::uint64_t seed);

/// Time limit of every wait, in virtual time.
inline constexpr std::chrono::nanoseconds automatic_deadline = std::chrono::seconds(10);

struct automatic_counts {
  std::int64_t seeds = 0;
  std::int64_t calls = 0;    ///< on all ranks together each
  std::int64_t apart = 0;    ///< of these, calls that took one rank over 1.1 times what they took another
  std::int64_t switches = 0; ///< decisions for another scheme
  std::int64_t changes = 0;  ///< of the scheme from one call to the next, trials included
  std::int64_t mistakes = 0; ///< of one rank, refused on all
  std::int64_t faulty = 0;   ///< runs in which a planned fault happened
  std::int64_t broken = 0;   ///< of these, runs that it ended
  std::int64_t disagreements = 0;

  automatic_counts& operator+=(automatic_counts const& other);
};

struct automatic_result {
  oktopk_fuzz::verdict wrong;
  std::string faults; ///< that were planned, in words
  automatic_counts done;
};

/// Runs what a seed stands for: without planned faults, and with them where it has some.
automatic_result run_automatic(automatic_scenario const& of);

} // namespace oktopk_simulate
