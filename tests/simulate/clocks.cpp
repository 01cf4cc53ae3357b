// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "simulate/scenario.hpp"

#include <chrono>

#ifdef OKTOPK_SIMULATE_CLOCKS

bool const oktopk_simulate::has_rank_clocks = true;

std::chrono::steady_clock::time_point real_now() asm("__real__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point now_of_rank() asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");

// What all code of this program calls for std::chrono::steady_clock::now().
std::chrono::steady_clock::time_point now_of_rank() {
  using clock = std::chrono::steady_clock;
  auto* const rank = oktopk_simulate::rank_clock::at_work;
  return rank == nullptr ? real_now()
                         : clock::time_point(std::chrono::duration_cast<clock::duration>(
                               std::chrono::duration<double>(rank->seconds())));
}

#else

bool const oktopk_simulate::has_rank_clocks = false;

#endif
