// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/time_limit.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>

namespace oktopk_programs {

inline constexpr double usual_deadline = std::chrono::duration<double>(oktopk::usual_time_limit).count();

/// The option that all programs with ranks have.
inline CLI::Option* add_deadline(CLI::App& app, double& seconds) {
  return app
      .add_option(
          "--deadline", seconds,
          "Seconds that a rank waits for the others at most,\nbefore all end with an error (default: 600; 0: for ever)")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS");
}

/// The time limit of a communicator; beyond a year there is none.
template <class Comm>
void set_deadline(Comm& comm, double seconds) {
  std::chrono::duration<double> const year = std::chrono::hours(24 * 365);
  comm.set_time_limit(seconds > year.count() ? std::chrono::nanoseconds(0)
                                             : std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                   std::chrono::duration<double>(seconds)));
}

} // namespace oktopk_programs
