// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/in_process/call_ref.hpp>
#include <oktopk/comm/in_process/fiber.hpp>
#include <oktopk/comm/in_process/simulated_events.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace oktopk::detail {

/// How a rank ends that has died in a simulation: no error of the library, nor of anybody, so that nobody takes it for
/// something to handle.
struct rank_died {};

/// How a wait of a rank has ended.
enum class wait_end : std::uint8_t { ready, late, stuck };

/// Ranks as fibres of one thread: the one that runs goes on until it waits for something that is not there yet. In a
/// simulation any other may go on at each message, too.
class in_process_schedule {
public:
  using time = std::chrono::nanoseconds;

  in_process_schedule(int ranks, std::optional<in_process::simulation> const& how)
      : fibers_(static_cast<std::size_t>(ranks)), waits_(fibers_.size()), died_(fibers_.size(), 0),
        steps_(fibers_.size(), 0), events_(how ? std::make_unique<simulated_events>(*how, ranks) : nullptr) {}

  simulated_events* events() const { return events_.get(); }
  std::string const& stuck_report() const { return stuck_report_; }
  bool has_finished(int fiber) const { return fibers_[index(fiber)]->finished(); }
  bool has_died(int fiber) const { return died_[index(fiber)] != 0; }

  /// Since the world began.
  time now() const { return events_ ? events_->now() : std::chrono::duration_cast<time>(clock::now() - start_); }

  /// Lets other ranks run until `ready` holds, or for so long, unless that is zero; `describe` says what for, should
  /// nobody be able to go on.
  template <class Ready, class Describe>
  wait_end wait(int fiber, Ready const& ready, Describe const& describe, time limit) {
    throw_if_dead(fiber);
    steps_[index(fiber)] += 1;
    // Once nobody could go on nothing is delivered any more: what is there may belong to a rank that is being unwound.
    if (!stuck_ && ready()) {
      return wait_end::ready;
    }
    wait_state& mine = waits_[index(fiber)];
    time const deadline = limit > time(0) ? later_by(limit) : never;
    mine = {what::waits, call_ref<bool>(ready), call_ref<std::string>(describe), deadline};
    if (!stuck_) {
      fibers_[index(fiber)]->leave();
    }
    wait_end const end = stuck_ ? wait_end::stuck : mine.late ? wait_end::late : wait_end::ready;
    steps_[index(fiber)] += 1;
    mine = {};
    throw_if_dead(fiber);
    return end;
  }

  /// In a simulation, before a rank starts a message: others may go on, and planned faults strike.
  void before_message(int fiber) {
    throw_if_dead(fiber);
    steps_[index(fiber)] += 1;
    if (auto const fault = events_->begin_message(fiber)) {
      if (fault->what == in_process::mishap::death) {
        died_[index(fiber)] = 1;
        throw rank_died();
      }
      sleep(fiber, fault->time);
    }
    if (events_->yields() && !stuck_) {
      waits_[index(fiber)] = {};
      fibers_[index(fiber)]->leave();
      throw_if_dead(fiber);
      steps_[index(fiber)] += 1;
    }
  }

  /// Runs one body per rank to its end and gives what each of them threw. `leave(rank)` is called where one has ended.
  std::vector<std::exception_ptr> run(std::function<void(int)> const& body, std::size_t stack_bytes,
                                      std::function<void(int)> const& leave) {
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      fibers_[rank] = std::make_unique<fiber>([&body, rank] { body(static_cast<int>(rank)); }, stack_bytes);
    }
    leave_ = &leave;
    events_ ? run_simulated() : run_in_turn();
    std::vector<std::exception_ptr> failures;
    for (auto const& each : fibers_) {
      failures.push_back(each->failure());
    }
    return failures;
  }

private:
  using clock = std::chrono::steady_clock;
  static constexpr time never = time::max();

  enum class what : std::uint8_t { runs, waits, sleeps };

  struct wait_state {
    what does = what::runs;
    call_ref<bool> ready{};
    call_ref<std::string> describe{};
    time until = never; ///< when a wait is late, or a sleep is over
    bool late = false;
  };

  time later_by(time how_long) const { return simulated_events::sum(now(), how_long); }

  static std::size_t index(int fiber) { return static_cast<std::size_t>(fiber); }

  void throw_if_dead(int fiber) const {
    if (died_[index(fiber)] != 0) {
      throw rank_died();
    }
  }

  void sleep(int fiber, time how_long) {
    wait_state& mine = waits_[index(fiber)];
    mine = {};
    mine.does = what::sleeps;
    mine.until = later_by(how_long);
    fibers_[index(fiber)]->leave();
    mine = {};
    throw_if_dead(fiber);
  }

  void go_on(std::size_t rank) {
    fibers_[rank]->resume();
    if (fibers_[rank]->finished()) {
      (*leave_)(static_cast<int>(rank));
    }
  }

  void run_in_turn() {
    bool unfinished = true;
    while (unfinished) {
      unfinished = false;
      bool moved = false;
      time const at = now(); // that of the last turn is good enough for limits
      for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
        if (fibers_[rank]->finished()) {
          continue;
        }
        wait_state& state = waits_[rank];
        if (stuck_ || state.does == what::runs || is_over(state, at)) {
          go_on(rank);
          moved = true;
        }
        unfinished = unfinished || !fibers_[rank]->finished();
      }
      if (unfinished && !moved) {
        declare_stuck();
      }
    }
  }

  static bool is_over(wait_state& state, time at) {
    bool const ready = state.ready();
    state.late = !ready && state.until < at;
    return ready || state.late;
  }

  void run_simulated() {
    std::vector<std::size_t> able;
    while (std::any_of(fibers_.begin(), fibers_.end(), [](auto const& each) { return !each->finished(); })) {
      if (!stuck_ && !events_->is_explored()) {
        events_->deliver_due();
      }
      able.clear();
      for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
        if (!fibers_[rank]->finished() && (stuck_ || is_able(waits_[rank]))) {
          able.push_back(rank);
        }
      }
      bool const explored = events_->is_explored() && !stuck_; // then an arrival is a choice, too
      std::size_t const arrivals = explored ? events_->under_way() : 0;
      if (able.empty() && arrivals == 0) {
        wait_for_event();
        continue;
      }
      std::size_t const next = stuck_ ? 0 : events_->choose(able.size() + arrivals, explored ? state_number() : 0);
      if (next == in_process::event_order::end) {
        end_all();
      } else if (next < able.size()) {
        go_on(able[next]);
        events_->pass_time();
      } else {
        events_->deliver_one(next - able.size());
      }
    }
    events_->tell();
  }

  bool is_able(wait_state& state) const {
    switch (state.does) {
    case what::runs: return true;
    case what::sleeps: return state.until <= now();
    case what::waits: return is_over(state, now());
    }
    return true;
  }

  // Nobody can go on now: time passes until somebody can, or all wait in vain, which is nobody's fault but the
  // program's unless a planned one has happened.
  void wait_for_event() {
    time arrival = events_->next_arrival();
    time deadline = never;
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      if (!fibers_[rank]->finished()) {
        time& first = waits_[rank].does == what::sleeps ? arrival : deadline;
        first = std::min(first, waits_[rank].until);
      }
    }
    if (arrival == never && (deadline == never || !events_->struck())) {
      declare_stuck();
    } else {
      events_->advance_to(std::min(arrival, deadline == never ? never : deadline + time(1)));
    }
  }

  void end_all() {
    died_.assign(died_.size(), 1);
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      while (!fibers_[rank]->finished()) {
        go_on(rank);
      }
    }
  }

  std::uint64_t state_number() const {
    std::uint64_t number = events_->arrived();
    for (std::size_t const steps : steps_) {
      number = simulated_events::mix(number) + steps;
    }
    return number;
  }

  void declare_stuck() {
    stuck_report_ = "deadlock: no rank can go on;";
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      stuck_report_ += " rank " + std::to_string(rank);
      if (fibers_[rank]->finished()) {
        stuck_report_ += died_[rank] != 0 ? " has died;" : fibers_[rank]->failure() ? " has failed;" : " has returned;";
      } else {
        stuck_report_ += " waits " + waits_[rank].describe() + ";";
      }
    }
    stuck_report_.pop_back();
    stuck_ = true;
  }

  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<wait_state> waits_;
  std::vector<char> died_;
  std::vector<std::size_t> steps_; // that a rank has gone: messages it came to, and waits that it came to or left
  std::unique_ptr<simulated_events> events_;
  std::function<void(int)> const* leave_ = nullptr;
  clock::time_point start_ = clock::now();
  bool stuck_ = false;
  std::string stuck_report_;
};

} // namespace oktopk::detail
