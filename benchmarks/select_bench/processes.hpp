// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace select_bench {

/// Copies of this process that measure at the same time, as the ranks of a node do, and wait for each other before each
/// measurement. The first of them reports.
///
/// To be made before Kokkos is initialised, which does not survive a fork.
class processes {
public:
  /// Starts all but the first.
  explicit processes(int count);
  processes(processes const&) = delete;
  processes& operator=(processes const&) = delete;
  ~processes();

  bool first() const { return number_ == 0; }
  bool several() const { return count_ > 1; }
  /// Returns once all processes are here; gives up, and ends this process, where one of them has ended.
  void meet();
  /// Waits for the others; whether all of them ended well. For the first.
  bool join();

private:
  struct shared;
  int count_;
  int number_ = 0;
  shared* shared_ = nullptr;
};

} // namespace select_bench
