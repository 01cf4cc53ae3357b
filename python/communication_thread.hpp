// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/training/communication_thread.hpp>

#include <Kokkos_Core.hpp>

#include <functional>
#include <future>
#include <memory>
#include <type_traits>
#include <utility>

namespace oktopk_torch {

/// The one thread that does all work of the module: jobs run one after the other, in the order in which they came.
///
/// Everything of Kokkos happens on it, from initialize to finalize: some backends of old releases launch kernels from
/// no other thread. Where somebody else has initialised Kokkos, it is left alone.
class communication_thread {
public:
  communication_thread() {
    post([this] {
      if (!Kokkos::is_initialized()) {
        Kokkos::initialize();
        is_ours_ = true;
      }
    });
  }

  communication_thread(communication_thread const&) = delete;
  communication_thread& operator=(communication_thread const&) = delete;

  /// After the jobs that have come; the objects of Kokkos are gone by then.
  ~communication_thread() {
    post([this] {
      if (is_ours_) {
        Kokkos::finalize();
      }
    });
  }

  /// A job throws nothing.
  void post(std::function<void()> job) { thread_.submit(std::move(job)); }

  /// Waits for what a job gives or throws, and for all jobs before it.
  template <class Job>
  std::invoke_result_t<Job> run(Job job) {
    auto const task = std::make_shared<std::packaged_task<std::invoke_result_t<Job>()>>(std::move(job));
    auto result = task->get_future();
    post([task] { (*task)(); });
    return result.get();
  }

private:
  bool is_ours_ = false;
  oktopk::detail::communication_thread thread_; // the last: its work uses the other
};

} // namespace oktopk_torch
