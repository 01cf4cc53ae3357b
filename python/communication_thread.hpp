// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Core.hpp>

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>

namespace oktopk_torch {

/// The one thread that does all work of the module: jobs run one after the other, in the order in which they came.
///
/// Everything of Kokkos happens on it, from initialize to finalize: some backends of old releases launch kernels from
/// no other thread. Where somebody else has initialised Kokkos, it is left alone.
class communication_thread {
public:
  communication_thread() : thread_([this] { work(); }) {}
  communication_thread(communication_thread const&) = delete;
  communication_thread& operator=(communication_thread const&) = delete;

  /// After the jobs that have come; the objects of Kokkos are gone by then.
  ~communication_thread() {
    post({}); // no job: the end
    thread_.join();
  }

  /// A job throws nothing.
  void post(std::function<void()> job) {
    {
      std::lock_guard const lock(mutex_);
      jobs_.push_back(std::move(job));
    }
    comes_.notify_one();
  }

  /// Waits for what a job gives or throws, and for all jobs before it.
  template <class Job>
  std::invoke_result_t<Job> run(Job job) {
    auto const task = std::make_shared<std::packaged_task<std::invoke_result_t<Job>()>>(std::move(job));
    auto result = task->get_future();
    post([task] { (*task)(); });
    return result.get();
  }

private:
  void work() {
    bool const ours = !Kokkos::is_initialized();
    if (ours) {
      Kokkos::initialize();
    }
    while (std::function<void()> const job = next()) {
      job();
    }
    if (ours) {
      Kokkos::finalize();
    }
  }

  std::function<void()> next() {
    std::unique_lock lock(mutex_);
    comes_.wait(lock, [this] { return !jobs_.empty(); });
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

  std::mutex mutex_;
  std::condition_variable comes_;
  std::deque<std::function<void()>> jobs_;
  std::thread thread_; // the last: it uses the others
};

} // namespace oktopk_torch
