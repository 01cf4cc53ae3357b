// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace oktopk_tests {

/// Ends the process when a test case takes too long, and says where it was.
///
/// A ctest time limit alone only names the executable; under mpirun that is all ranks and all cases at once.
/// The limit is OKTOPK_TEST_SECONDS, or 120 seconds.
class watchdog {
public:
  /// `who` opens the message; `last_words` is called before the end, to print what the process has held back.
  watchdog(std::string who, std::function<void()> last_words)
      : who_(std::move(who)), last_words_(std::move(last_words)),
        thread_([this](std::stop_token const& stop) { run(stop); }) {}

  /// A test case or a section of one begins: the clock starts with the outermost.
  void enter(std::string const& where) {
    std::lock_guard const lock(mutex_);
    if (path_.empty()) {
      deadline_ = clock::now() + limit_;
    }
    path_.push_back(where);
    changed_.notify_all();
  }

  void leave() {
    std::lock_guard const lock(mutex_);
    path_.pop_back();
    changed_.notify_all();
  }

private:
  using clock = std::chrono::steady_clock;

  static std::chrono::seconds limit_of_environment() {
    char const* text = std::getenv("OKTOPK_TEST_SECONDS");
    int const seconds = text == nullptr ? 0 : std::atoi(text);
    return std::chrono::seconds(seconds > 0 ? seconds : 120);
  }

  void run(std::stop_token const& stop) {
    std::unique_lock lock(mutex_);
    while (!stop.stop_requested()) {
      if (path_.empty()) {
        changed_.wait(lock, stop, [this] { return !path_.empty(); });
      } else if (clock::now() >= deadline_) {
        bark();
      } else {
        changed_.wait_until(lock, stop, deadline_, [this] { return path_.empty(); });
      }
    }
  }

  [[noreturn]] void bark() {
    std::string where;
    for (auto const& step : path_) {
      where += (where.empty() ? "" : " / ") + step;
    }
    std::fprintf(stderr, "%s: no end after %lld s in: %s\n", who_.c_str(), static_cast<long long>(limit_.count()),
                 where.c_str());
    last_words_();
    std::fflush(nullptr);
    // Ranks that hang together reach this together; the first to exit makes the launcher kill the others.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    std::_Exit(1);
  }

  std::string who_;
  std::function<void()> last_words_;
  std::chrono::seconds limit_ = limit_of_environment();
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<std::string> path_;
  clock::time_point deadline_;
  std::jthread thread_; // last: it uses all of the above
};

} // namespace oktopk_tests
