// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"
#include "quality.hpp"

#include <oktopk/comm/concept.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace oktopk_bench {

/// One measured step of one algorithm: the maximum over ranks, unless it is the same on all of them.
struct measurement {
  std::string algorithm;
  int ranks = 0;
  std::int64_t length = 0;
  std::int64_t k = 0;
  std::int64_t step = 0;
  double seconds = 0;
  double select_seconds = 0;
  double own_seconds = 0;        ///< without waiting: what the rank itself did
  double own_select_seconds = 0; ///< the same of the selection
  double words_sent = 0;
  double words_received = 0;
  std::int64_t messages_sent = 0;
  std::int64_t local_selected = 0;
  std::int64_t global_selected = 0;
  double bound_words = 0;
  double reduce_imbalance = 0; ///< bytes received in the reduce phase: maximum over mean; nought where there were none
  bool words_are_a_floor = false; ///< the communicator's own collective hides its messages; no fewer are possible
  std::optional<update_quality> quality; ///< where it was asked for
  /// Messages and words sent for each purpose, `oktopk::phase`, of the rank that sends most for it.
  std::array<std::pair<double, double>, oktopk::phase_count> by_purpose{};

  /// The share of the gradient that the update has.
  double output_density() const {
    return length > 0 ? static_cast<double>(global_selected) / static_cast<double>(length) : 0;
  }
};

/// The whole CSV file, header included.
std::string csv_text(std::span<measurement const> rows);

/// The line above the table: what was run, and where.
std::string heading_text(options const& asked, std::span<measurement const> rows, std::string const& input,
                         std::string const& where);

/// One line per algorithm for people: medians of the times, the worst step of everything else.
std::string table_text(std::span<measurement const> rows);

/// Messages and words of the last step by purpose, a line each, per algorithm.
std::string control_text(std::span<measurement const> rows);

/// Words with as many digits as they have: most often none after the point.
std::string words_text(double words);

} // namespace oktopk_bench
