// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <thread>

namespace oktopk::detail {

/// One wait with a time limit.
///
/// `try_again` is for a loop that asks MPI in between: it gives the core away, and now and then does `look`.
class timed_wait {
public:
  using clock = std::chrono::steady_clock;

  explicit timed_wait(std::chrono::nanoseconds limit) : limit_(limit) {}

  /// Whether there is time left.
  template <class Look>
  bool try_again(Look const& look) {
    std::this_thread::yield();
    auto const now = clock::now();
    if (begun_ == clock::time_point()) { // the first question is asked without a clock
      begun_ = now;
      next_look_ = now + between_looks;
    }
    if (now >= next_look_) {
      look();
      next_look_ = now + between_looks;
    }
    return now - begun_ <= limit_;
  }

private:
  static constexpr std::chrono::milliseconds between_looks{1};

  std::chrono::nanoseconds limit_;
  clock::time_point begun_{};
  clock::time_point next_look_{};
};

} // namespace oktopk::detail
