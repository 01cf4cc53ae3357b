// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <span>
#include <vector>

namespace oktopk {

/// Times of one bucket in a step, in seconds since the step began.
struct bucket_times {
  double ready = 0; ///< its last gradient was there
  double began = 0; ///< its call
  double ended = 0;
};

/// How much of a step's communication the backward pass has hidden.
struct overlap_times {
  std::vector<bucket_times> buckets; ///< in the order of their calls
  double wait_began = 0;             ///< the backward pass was over: `wait` was called
  double wait_ended = 0;             ///< all averages were there
  int absent = 0;                    ///< tensors that this rank did not announce, which counted as zeros

  /// Seconds of all calls: selection, messages and sums.
  double communication() const {
    double sum = 0;
    for (bucket_times const& each : buckets) {
      sum += each.ended - each.began;
    }
    return sum;
  }

  /// Seconds of calls that ran before `wait` was called.
  double hidden() const {
    double sum = 0;
    for (bucket_times const& each : buckets) {
      sum += std::max(0.0, std::min(each.ended, wait_began) - std::min(each.began, wait_began));
    }
    return sum;
  }

  /// The most seconds that could have been hidden: calls of the same lengths, each as early as its gradients and the
  /// call before it allow, up to the end of the backward pass.
  double hideable() const {
    double free_at = 0;
    double sum = 0;
    for (bucket_times const& each : buckets) {
      double const begin = std::max(free_at, each.ready);
      double const end = begin + (each.ended - each.began);
      sum += std::max(0.0, std::min(end, wait_began) - std::min(begin, wait_began));
      free_at = end;
    }
    return sum;
  }
};

} // namespace oktopk
