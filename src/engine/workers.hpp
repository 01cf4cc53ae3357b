// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "engine/engine_space.hpp"

#include <oktopk/training/communication_thread.hpp>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// The one thread that does all work of a group of ranks, in the order in which it came, what it works on, and a second
/// thread that tells the program what has ended: callbacks may wait for a lock, as that of an interpreter, while sums go
/// on.
///
/// Each group has its own, so that averages of several groups end in whatever order each rank starts them. Jobs of two
/// threads hold the launch lock with a Kokkos that two threads must not use at once; whoever waits for messages gives it
/// back.
class worker {
public:
  /// A job throws nothing.
  void post(std::function<void()> job) {
    thread_.submit([job = std::move(job)] {
      std::optional<launch_lock> launching;
      if (launches_need_lock) {
        launching.emplace();
      }
      job();
    });
  }

  /// For jobs: calls the program back, behind what was told before.
  void tell(std::function<void()> what) { teller_.submit(std::move(what)); }

  bool runs_here() const { return thread_.runs_here() || teller_.runs_here(); }

  /// For jobs that have come, and for what they tell.
  void wait() {
    thread_.wait();
    teller_.wait();
  }

  /// Averagers and communicators, for jobs alone. (No map: clang 15 for HIP breaks at its nodes.)
  struct owned {
    void const* by;
    std::shared_ptr<void> object;
  };
  std::vector<owned> all;
  std::atomic<int> users{0}; ///< as many of them; 0: the thread is free for another group

private:
  communication_thread teller_;
  communication_thread thread_; // the last: its work uses the others
};

/// The workers of this process, by their groups. One thread at a time calls the members.
///
/// The first worker initialises Kokkos and finalizes it: some backends of old releases launch kernels from no other
/// thread, and with them it is the worker of all groups. (Those of a device do, from threads that have chosen it.) Where
/// somebody else has initialised Kokkos, it is left alone. Kokkos is finalized at the exit of the process, behind what was
/// made after its initialization: views of other libraries may live as long as static objects.
class workers {
public:
  /// All work is done on this device of `engine_space`. An `error` where Kokkos cannot start there.
  explicit workers(int device) : device_(device) {
    device_type::expect(device);
    std::exception_ptr why;
    first().post([&] {
      try {
        start_kokkos();
      } catch (...) {
        why = std::current_exception();
      }
    });
    first().wait(); // so that what the process does at its exit comes in the right order
    if (why) {
      std::rethrow_exception(why);
    }
  }

  workers& operator=(workers&&) = delete;

  /// After the jobs that have come.
  ~workers() {
    end_jobs();
    all_.resize(1);
    first().post([this] {
      if (is_ours_) {
        Kokkos::finalize();
      }
    });
  }

  worker& of(void const* group) {
    if (!is_device<engine_space> && !launches_from_any_thread<engine_space>()) {
      return first();
    }
    auto const known = std::find_if(all_.begin(), all_.end(), [group](entry const& each) {
      return each.group == group && each.of->users > 0; // alive, so it is the same group
    });
    auto const found = known != all_.end() ? known : std::find_if(all_.begin(), all_.end(), [](entry const& each) {
      return each.of->users == 0;
    });
    entry& taken = found != all_.end() ? *found : all_.emplace_back();
    taken.group = group;
    taken.of->post([device = device_] { device_type::use(device); });
    return *taken.of;
  }

  int device() const { return device_; }

  bool run_here() const {
    return std::any_of(all_.begin(), all_.end(), [](entry const& each) { return each.of->runs_here(); });
  }

  /// A process that was forked has all objects, and not the threads: whatever waits for them would wait for ever.
  bool are_of_this_process() const { return process_ == ::getpid(); }

  /// Destroys what the workers have, after the jobs that have come.
  void end_jobs() {
    for (entry const& each : all_) {
      each.of->post([of = each.of.get()] { of->all.clear(); });
    }
    for (entry const& each : all_) {
      each.of->wait();
    }
  }

private:
  using device_type = engine_device<engine_space>;

  struct entry {
    void const* group = nullptr;
    std::unique_ptr<worker> of = std::make_unique<worker>();
  };

  worker& first() { return *all_.front().of; }

  void start_kokkos() {
    device_type::use(device_);
    if (!Kokkos::is_initialized()) {
      device_type::initialize(device_);
      is_ours_ = true;
    } else if (int const started = device_type::started(); started != device_) {
      throw error(fault::bad_state, "the program has started Kokkos on device " + std::to_string(started) +
                                        ", and this engine is to average on device " + std::to_string(device_));
    }
  }

  int device_;
  bool is_ours_ = false;
  pid_t process_ = ::getpid();
  std::vector<entry> all_ = std::vector<entry>(1);
};

/// The workers from their first use until the exit of the process. Errors begin with the name of the library, `caller`.
class running_workers {
public:
  /// An `error` (bad_state) where there are none to be had, or where a job asks that waits for another one.
  static void expect(std::string const& caller, bool waits = false) {
    std::scoped_lock const lock(mutex_);
    expect_locked(caller, waits);
  }

  /// Starts them on a device; an `error` where they run on another one.
  static void start_on(int device, std::string const& caller) {
    std::scoped_lock const lock(mutex_);
    expect_locked(caller, false, device);
    if (all_->device() != device) {
      throw error(fault::bad_state, caller + " averages on device " + std::to_string(all_->device()) +
                                        ", and a process has one of them: device " + std::to_string(device) +
                                        " is for another process");
    }
  }

  /// The same for one that does not start them: an `error` where a job asks, which would wait for itself.
  static void expect_no_job(std::string const& caller) {
    std::scoped_lock const lock(mutex_);
    if (are_there() && all_->run_here()) {
      throw no_wait(caller);
    }
  }

  /// The worker of the group, which has a user more.
  static worker& take(void const* group, std::string const& caller) {
    std::scoped_lock const lock(mutex_);
    expect_locked(caller, true);
    worker& taken = all_->of(group);
    taken.users += 1;
    return taken;
  }

  /// True where a job that is posted will be done.
  static bool are_there() { return all_ && all_->are_of_this_process(); }

  /// Where values are to lie, of workers that are there.
  static int device() {
    std::scoped_lock const lock(mutex_);
    return all_->device();
  }

  /// Ends all jobs and what they work on; what asks from now on gets an error. Holds no lock while it waits.
  static void shut_down() {
    {
      std::scoped_lock const lock(mutex_);
      are_shut_down_ = true;
    }
    if (are_there()) {
      all_->end_jobs();
    }
  }

private:
  static error no_wait(std::string const& caller) {
    return {fault::bad_state, "a callback of a future cannot wait for " + caller};
  }

  static void expect_locked(std::string const& caller, bool waits, std::optional<int> device = std::nullopt) {
    if (are_shut_down_) {
      throw error(fault::bad_state, caller + " has been shut down");
    }
    if (!all_) {
      all_ = std::make_unique<workers>(device ? *device : engine_device<engine_space>::usual());
      std::atexit(&end);
    }
    if (!all_->are_of_this_process()) {
      throw error(fault::bad_state, caller + " was in use before this process was forked: use it in processes that are "
                                             "spawned, or fork them before");
    }
    if (waits && all_->run_here()) { // the wait would have no end
      throw no_wait(caller);
    }
  }

  static void end() {
    if (!are_there()) {
      static_cast<void>(all_.release()); // its destructor would wait for the threads
    }
    all_.reset();
  }

  inline static std::mutex mutex_; // of these members
  inline static std::unique_ptr<workers> all_;
  inline static bool are_shut_down_ = false;
};

/// An object on a worker's thread, which owns it.
template <class Object>
class posted {
public:
  /// `make()` gives a shared pointer, on the worker's thread; what it throws is thrown here. `of` has a user for it.
  template <class Make>
  posted(worker& of, std::string caller, Make const& make) : worker_(of), caller_(std::move(caller)) {
    try {
      run([&] {
        auto const made = make();
        on_ = made.get();
        worker_.all.push_back({on_, made});
      });
    } catch (...) {
      worker_.users -= 1;
      throw;
    }
  }

  posted& operator=(posted&&) = delete;

  ~posted() {
    if (running_workers::are_there()) {
      worker_.post([&from = worker_, on = on_] {
        std::erase_if(from.all, [on](worker::owned const& each) { return each.by == on; });
        from.users -= 1;
      });
    }
  }

  /// `job(object)` throws nothing.
  template <class Job>
  void post(Job job) const {
    running_workers::expect(caller_);
    worker_.post([on = on_, job = std::move(job)] { job(*on); });
  }

  /// What `job()` gives or throws on the worker's thread.
  template <class Job>
  std::invoke_result_t<Job> run(Job const& job) const {
    running_workers::expect(caller_, true);
    auto const task = std::make_shared<std::packaged_task<std::invoke_result_t<Job>()>>(job);
    auto result = task->get_future();
    worker_.post([task] { (*task)(); });
    return result.get();
  }

  /// Until the jobs that have come are done, those of other objects of the group, too, and have told it.
  void wait() const {
    running_workers::expect(caller_, true);
    worker_.wait();
  }

  /// For jobs.
  Object& object() const { return *on_; }
  worker& on_thread() const { return worker_; }
  std::string const& caller() const { return caller_; }

private:
  worker& worker_;
  std::string caller_;
  Object* on_ = nullptr;
};

/// What an error says to the user of the library `caller`.
inline std::string text_of(std::exception_ptr const& why, std::string const& caller) {
  try {
    std::rethrow_exception(why);
  } catch (error const& caught) {
    bool const is_late = caught.code() == fault::timed_out;
    return caught.what() + (is_late ? " (calls of " + caller +
                                          " are collective: does every rank of the group make this "
                                          "one, in the same order?)"
                                    : "");
  } catch (std::exception const& caught) {
    return caught.what();
  } catch (...) {
    return "an exception of unknown type";
  }
}

} // namespace oktopk::detail
