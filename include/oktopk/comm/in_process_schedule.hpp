// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/fiber.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace oktopk::detail {

/// A function object of somebody else, without its type and without memory of its own, as `std::function` would take
/// for a lambda with three references. The object outlives it.
template <class Result>
class call_ref {
public:
  call_ref() = default;

  template <class Call>
  explicit call_ref(Call const& call)
      : object_(std::addressof(call)),
        call_([](void const* object) -> Result { return (*static_cast<Call const*>(object))(); }) {}

  Result operator()() const { return call_(object_); }

private:
  void const* object_ = nullptr;
  Result (*call_)(void const*) = nullptr;
};

/// Thrown in a rank that dies in a simulation: no `std::exception`, so that no program handles it.
struct rank_died {};

class in_process_group;
struct in_process_message;
class in_process_schedule;

/// The hook of a simulation (`comm/simulation.hpp`), which decides who goes on and what becomes of messages. Without
/// one a rank runs until it waits, and a message arrives when its two sides have met.
class in_process_events {
public:
  in_process_events() = default;
  in_process_events(in_process_events const&) = delete;
  in_process_events& operator=(in_process_events const&) = delete;
  virtual ~in_process_events() = default;

  /// Time since the world began.
  virtual std::chrono::nanoseconds now() const = 0;
  /// Runs all ranks to their end.
  virtual void run(in_process_schedule& ranks) = 0;
  /// A rank comes to a wait, or leaves it; throws `rank_died` where it may not go on.
  virtual void step(int fiber) = 0;
  virtual bool has_died(int fiber) const = 0;
  /// A rank is about to start a message: others may go on before; throws as `step`.
  virtual void before_message(in_process_schedule& ranks, int fiber) = 0;
  /// Hands a message to its group, or does otherwise; gives the one that its rank waits for.
  virtual in_process_message* post(in_process_group& group, in_process_message message) = 0;
  /// The two sides of a message have met.
  virtual void launch(in_process_message& from, in_process_message* to) = 0;
  /// Nothing of a rank arrives any more, and nothing arrives there; of one group, or of all where it is null.
  virtual void recall(int fiber, void const* group) noexcept = 0;
};

/// The end of a wait.
enum class wait_end : std::uint8_t { ready, late, stuck };

/// Ranks as fibres of one thread: the one that runs goes on until it waits for something that is not there yet, unless
/// events decide otherwise.
class in_process_schedule {
public:
  using time = std::chrono::nanoseconds;
  static constexpr time never = time::max();

  struct wait_state {
    bool waits = false;
    call_ref<bool> ready{};
    call_ref<std::string> describe{};
    time until = never; ///< when the wait is late
    bool late = false;

    /// True if it is ready, or late.
    bool is_over(time at) {
      bool const is_ready = ready();
      late = !is_ready && until < at;
      return is_ready || late;
    }
  };

  explicit in_process_schedule(int ranks, std::unique_ptr<in_process_events> events = nullptr)
      : fibers_(static_cast<std::size_t>(ranks)), waits_(fibers_.size()), events_(std::move(events)) {}

  int size() const { return static_cast<int>(fibers_.size()); }
  in_process_events* events() const { return events_.get(); }
  wait_state& state(int fiber) { return waits_[index(fiber)]; }
  bool has_finished(int fiber) const { return fibers_[index(fiber)]->finished(); }
  bool has_ended() const {
    return std::all_of(fibers_.begin(), fibers_.end(), [](auto const& each) { return each->finished(); });
  }

  /// True once no rank could go on; from then on all do, one after the other, and their waits end.
  bool is_stuck() const { return stuck_; }
  std::string const& stuck_report() const { return stuck_report_; }

  /// Since the world began.
  time now() const { return events_ ? events_->now() : std::chrono::duration_cast<time>(clock::now() - start_); }

  /// A later time, or never.
  static time sum(time at, time by) { return by < never - at ? at + by : never; }

  /// Lets other ranks run until `ready` holds, or for so long, unless that is zero; `describe` says what for, should
  /// nobody be able to go on.
  template <class Ready, class Describe>
  wait_end wait(int fiber, Ready const& ready, Describe const& describe, time limit) {
    note_step(fiber);
    // Once nobody could go on nothing is delivered any more: what is there may belong to a rank that is being unwound.
    if (!stuck_ && ready()) {
      return wait_end::ready;
    }
    wait_state& mine = state(fiber);
    time const deadline = limit > time(0) ? sum(now(), limit) : never;
    mine = {true, call_ref<bool>(ready), call_ref<std::string>(describe), deadline};
    if (!stuck_) {
      fibers_[index(fiber)]->leave();
    }
    wait_end const end = stuck_ ? wait_end::stuck : mine.late ? wait_end::late : wait_end::ready;
    mine = {};
    note_step(fiber);
    return end;
  }

  /// Runs one body per rank to its end and gives what each of them threw. `leave(rank)` is called where one has ended.
  std::vector<std::exception_ptr> run(std::function<void(int)> const& body, std::size_t stack_bytes,
                                      std::function<void(int)> const& leave) {
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      fibers_[rank] = std::make_unique<fiber>([&body, rank] { body(static_cast<int>(rank)); }, stack_bytes);
    }
    leave_ = &leave;
    events_ ? events_->run(*this) : run_in_turn();
    std::vector<std::exception_ptr> failures;
    for (auto const& each : fibers_) {
      failures.push_back(each->failure());
    }
    return failures;
  }

  /// From outside of all ranks: runs one until it leaves or ends.
  void go_on(int fiber) {
    fibers_[index(fiber)]->resume();
    if (has_finished(fiber)) {
      (*leave_)(fiber);
    }
  }

  /// From inside a rank: lets others run.
  void pause(int fiber) {
    state(fiber) = {};
    fibers_[index(fiber)]->leave();
  }

  void declare_stuck() {
    stuck_report_ = "deadlock: no rank can go on;";
    for (int rank = 0; rank < size(); ++rank) {
      stuck_report_ += " rank " + std::to_string(rank);
      if (!has_finished(rank)) {
        stuck_report_ += state(rank).waits ? " waits " + state(rank).describe() + ";" : " stands still;";
      } else if (events_ && events_->has_died(rank)) {
        stuck_report_ += " has died;";
      } else {
        stuck_report_ += fibers_[index(rank)]->failure() ? " has failed;" : " has returned;";
      }
    }
    stuck_report_.pop_back();
    stuck_ = true;
  }

private:
  using clock = std::chrono::steady_clock;

  static std::size_t index(int fiber) { return static_cast<std::size_t>(fiber); }

  void note_step(int fiber) const {
    if (events_) {
      events_->step(fiber);
    }
  }

  void run_in_turn() {
    while (!has_ended()) {
      bool moved = false;
      time const at = now(); // that of the last turn is good enough for limits
      for (int rank = 0; rank < size(); ++rank) {
        if (!has_finished(rank) && (stuck_ || !state(rank).waits || state(rank).is_over(at))) {
          go_on(rank);
          moved = true;
        }
      }
      if (!moved) {
        declare_stuck();
      }
    }
  }

  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<wait_state> waits_;
  std::unique_ptr<in_process_events> events_;
  std::function<void(int)> const* leave_ = nullptr;
  clock::time_point start_ = clock::now();
  bool stuck_ = false;
  std::string stuck_report_;
};

} // namespace oktopk::detail
