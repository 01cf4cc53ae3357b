// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <sys/time.h>

namespace oktopk_tests {

/// From now on the process may take so many seconds of processor time, which others on the machine do not take away,
/// until it gets SIGPROF; 0 for as long as it likes.
inline void limit_processor_time(double seconds) {
  auto const whole = static_cast<time_t>(seconds);
  auto const rest = static_cast<suseconds_t>(1e6 * (seconds - static_cast<double>(whole)));
  itimerval const once{.it_interval = {}, .it_value = {.tv_sec = whole, .tv_usec = rest}};
  setitimer(ITIMER_PROF, &once, nullptr);
}

} // namespace oktopk_tests
