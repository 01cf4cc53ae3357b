// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace oktopk_programs {

/// A bar on the standard error stream while the program works; nothing where that is no terminal.
class progress {
public:
  /// `wanted` is for one rank only, so that there is one bar.
  progress(bool wanted, std::int64_t total);
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  ~progress() { wipe(); }

  void advance(std::string const& now);
  /// Takes the bar away until the next `advance`, so that a line does not begin behind it.
  void wipe();

private:
  using clock = std::chrono::steady_clock;

  bool shown_;
  bool drawn_ = false;
  std::int64_t total_;
  std::int64_t done_ = 0;
  clock::time_point start_ = clock::now();
  clock::time_point last_drawn_{};
};

} // namespace oktopk_programs
