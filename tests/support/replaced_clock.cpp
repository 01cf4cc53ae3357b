// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/replaced_clock.hpp"

#ifdef OKTOPK_TESTS_REPLACE_CLOCK

bool const oktopk_tests::can_replace_clock = true;

std::chrono::steady_clock::time_point real_now() asm("__real__ZNSt6chrono3_V212steady_clock3nowEv");
std::chrono::steady_clock::time_point now_of_program() asm("__wrap__ZNSt6chrono3_V212steady_clock3nowEv");

std::chrono::steady_clock::time_point now_of_program() {
  auto const replaced = oktopk_tests::replaced_clock == nullptr ? std::nullopt : oktopk_tests::replaced_clock();
  return replaced ? *replaced : real_now();
}

#else

bool const oktopk_tests::can_replace_clock = false;

#endif
