// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/training/overlap_times.hpp>

#include <chrono>
#include <cstddef>
#include <vector>

namespace oktopk::detail {

/// Times of what happens in a step, in seconds since it began, and the number of absent tensors. Each bucket's times
/// are written by one thread at a time.
class step_clock {
public:
  step_clock() = default;
  explicit step_clock(std::size_t buckets) { times_.buckets.resize(buckets); }

  /// A step begins with the first thing that happens in it.
  void begin_if_first() {
    if (!running_) {
      running_ = true;
      began_ = clock::now();
      times_.buckets.assign(times_.buckets.size(), bucket_times());
      times_.absent = 0;
    }
  }

  void end_step() { running_ = false; }

  double now() const { return std::chrono::duration<double>(clock::now() - began_).count(); }

  bucket_times& of(int bucket) { return times_.buckets[static_cast<std::size_t>(bucket)]; }
  void note_absent() { times_.absent += 1; }
  void wait_begins() { times_.wait_began = now(); }
  void wait_ends() { times_.wait_ended = now(); }

  /// Of the last step, once it has ended.
  overlap_times const& times() const { return times_; }

private:
  using clock = std::chrono::steady_clock;

  bool running_ = false;
  clock::time_point began_;
  overlap_times times_;
};

} // namespace oktopk::detail
