// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/plan.hpp"
#include "fuzz/worker.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace oktopk_fuzz {

/// What is printed: progress on a terminal, findings with the command that shows them again, and the sums at the end.
class report {
public:
  explicit report(plan const& all);

  /// Called often; prints now and then, and only on a terminal.
  void progress(counts const& of_this_worker);
  void found(work_done what);
  void add(counts const& done) { sum_ += done; }
  /// The sums. Gives the program's exit status.
  int finish() const;

private:
  double seconds() const;

  plan const& all_;
  counts sum_;
  std::int64_t findings_ = 0;
  std::map<std::string, int> times_; // by check and kind of algorithm
  bool on_terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

} // namespace oktopk_fuzz
