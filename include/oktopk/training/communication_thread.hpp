// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/version.hpp>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>

namespace oktopk::detail {

/// One thread that does pieces of work one after the other, in the order in which they are given to it.
///
/// The work throws nothing. The destructor does the remaining pieces and ends the thread.
class communication_thread {
public:
  communication_thread() : thread_([this] { work(); }) {}

  ~communication_thread() {
    {
      std::scoped_lock const lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void submit(std::function<void()> piece) {
    {
      std::scoped_lock const lock(mutex_);
      pieces_.push(std::move(piece));
      open_ += 1;
    }
    changed_.notify_all();
  }

  /// True if a piece of work calls this: a piece cannot wait for the pieces behind it.
  bool runs_here() const { return std::this_thread::get_id() == thread_.get_id(); }

  /// Waits until all pieces are done.
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return open_ == 0; });
  }

private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ends_ || !pieces_.empty(); });
      if (pieces_.empty()) {
        return;
      }
      std::function<void()> piece = std::move(pieces_.front());
      pieces_.pop();
      lock.unlock();
      piece();
      piece = nullptr; // the end of its captures may wait for a thread that submits more work
      lock.lock();
      open_ -= 1;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::queue<std::function<void()>> pieces_;
  int open_ = 0; // given and not done
  bool ends_ = false;
  std::thread thread_; // last: it uses the others
};

} // namespace oktopk::detail
