// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "numbers.hpp"

#include <oktopk/comm/time_limit.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

namespace oktopk_programs {

inline constexpr double usual_deadline = std::chrono::duration<double>(oktopk::usual_time_limit).count();

/// The option that all programs with ranks have.
inline CLI::Option* add_deadline(CLI::App& app, double& seconds) {
  return app
      .add_option(
          "--deadline", seconds,
          "Seconds that a rank waits for the others at most,\nbefore all end with an error (default: 600; 0: for ever)")
      ->check([](std::string const& text) {
        return number_in<double>(text).value_or(-1) >= 0 ? std::string() : text + " is no number of 0 or more";
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

/// What is wrong with a density on a command line; nothing where it is one.
inline std::string fault_of_density(std::string const& text) {
  double const density = number_in<double>(text).value_or(0);
  return density > 0 && density <= 1 ? "" : text + " is not a number over 0 and at most 1";
}

/// Throws where a gradient file has more values than 32-bit indices can name.
inline void check_length(std::string const& file, std::int64_t length) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (length > most) {
    throw std::runtime_error(file + " has " + std::to_string(length) + " values; at most " + std::to_string(most) +
                             " can be measured");
  }
}

} // namespace oktopk_programs
