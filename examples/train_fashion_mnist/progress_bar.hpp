// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstdint>

namespace fashion {

/// One line on standard output that shows how far a run has come; silent unless it is made to be shown.
class progress_bar {
public:
  progress_bar(bool shown, std::int64_t epochs, std::int64_t iterations_per_epoch);

  /// `iteration` of `epoch` (both counted from 1) is done, with this loss.
  void update(std::int64_t epoch, std::int64_t iteration, double loss);

  /// Takes the line away, so that something else can be printed there.
  void clear();

private:
  using clock = std::chrono::steady_clock;

  bool shown_;
  bool drawn_ = false;
  std::int64_t epochs_;
  std::int64_t iterations_per_epoch_;
  clock::time_point start_ = clock::now();
  clock::time_point last_drawn_{};
};

} // namespace fashion
