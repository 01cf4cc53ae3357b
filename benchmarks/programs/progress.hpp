// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace oktopk_programs {

/// What a program does, on the standard error stream while it works: a bar on a terminal, a line every half minute
/// elsewhere.
class progress {
public:
  using clock = std::chrono::steady_clock;

  /// `wanted` is for one rank only, so that it is said once. `total` counts steps; 0 where it is not known.
  progress(bool wanted, std::int64_t total, clock::duration between_lines = std::chrono::seconds(30));
  progress(progress const&) = delete;
  progress& operator=(progress const&) = delete;
  ~progress() { wipe(); }

  /// A step is done.
  void advance(std::string const& now);
  /// Nothing is done, but time has passed.
  void show(std::string const& now);
  /// Takes the bar away until the next `advance`, so that a line does not begin behind it.
  void wipe();

private:
  std::string place(std::string const& now) const;

  bool wanted_;
  bool terminal_;
  bool drawn_ = false;
  std::int64_t total_;
  std::int64_t done_ = 0;
  clock::duration pause_;
  clock::time_point start_ = clock::now();
  clock::time_point last_drawn_;
};

} // namespace oktopk_programs
