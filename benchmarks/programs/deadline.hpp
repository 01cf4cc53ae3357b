// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/time_limit.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <string>

namespace oktopk_programs {

inline constexpr double usual_deadline = std::chrono::duration<double>(oktopk::usual_time_limit).count();

/// The option that all programs with ranks have.
inline CLI::Option* add_deadline(CLI::App& app, double& seconds) {
  return app
      .add_option(
          "--deadline", seconds,
          "Seconds that a rank waits for the others at most,\nbefore all end with an error (default: 600; 0: for ever)")
      ->check([](std::string const& text) { // NaN is in each of CLI11's own ranges
        double number = 0;
        return CLI::detail::lexical_cast(text, number) && number >= 0 ? std::string()
                                                                      : text + " is no number of 0 or more";
      })
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
