// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace oktopk::in_process {

/// What can go wrong with a rank or with one of its messages.
enum class mishap : std::uint8_t {
  death,    ///< the rank ends before it starts the message; nothing of it is delivered any more
  stop,     ///< the rank stands still for a time before it starts the message
  loss,     ///< the message never arrives, though its sender believes so
  doubling, ///< the message arrives twice
  delay,    ///< the message takes so much longer
  bit_flip, ///< the message arrives with one bit changed
};

constexpr std::string_view name(mishap what) noexcept {
  constexpr std::string_view names[] = {"death", "stop", "loss", "doubling", "delay", "bit_flip"};
  return names[static_cast<int>(what)];
}

/// One fault of a simulated world: a rank and its i-th message.
///
/// Messages of a rank are counted from 1: its sends, its receives and its part in `allreduce`. What strikes a message
/// rather than the rank takes the first send from the i-th message on, a flip the first that has bytes.
struct planned_fault {
  mishap what = mishap::death;
  int rank = 0;
  std::int64_t message = 1;
  std::chrono::nanoseconds time{0}; ///< of a stop or a delay
  std::uint64_t bit = 0;            ///< of a flip, modulo the bits of the message

  /// "stop of rank 2 at its message 17 for 0.500000 s"
  std::string text() const {
    std::string said =
        std::string(name(what)) + " of rank " + std::to_string(rank) + " at its message " + std::to_string(message);
    if (what == mishap::stop || what == mishap::delay) {
      said += " for " + std::to_string(std::chrono::duration<double>(time).count()) + " s";
    }
    return said + (what == mishap::bit_flip ? ", bit " + std::to_string(bit) : "");
  }

  bool operator==(planned_fault const&) const = default;
};

/// All faults of a simulated world, each of which happens at most once.
struct fault_plan {
  std::vector<planned_fault> faults;

  std::string text() const {
    std::string all;
    for (planned_fault const& each : faults) {
      all += (all.empty() ? "" : "; ") + each.text();
    }
    return all.empty() ? "no faults" : all;
  }

  bool operator==(fault_plan const&) const = default;
};

/// What has happened in a simulated world.
struct simulated_run {
  struct strike {
    planned_fault what;
    std::chrono::nanoseconds at{0}; ///< in virtual time
  };

  std::vector<std::int64_t> messages; ///< started by each rank
  std::vector<strike> strikes;        ///< the faults that happened, in their order
  std::int64_t events = 0;            ///< choices that were made
  std::chrono::nanoseconds end{0};    ///< in virtual time
};

/// Who says what happens next in a simulated world; for programs that try one order of events after another.
class event_order {
public:
  static constexpr std::size_t end = std::numeric_limits<std::size_t>::max();

  event_order() = default;
  event_order(event_order const&) = delete;
  event_order& operator=(event_order const&) = delete;
  virtual ~event_order() = default;

  /// Which of so many events is next; `end`: none, all ranks end here as if they had died. Throws nothing.
  ///
  /// An event is that a rank goes on, or that a message arrives. `state` stands for all that has happened: the same
  /// number after other orders of the same events, as far as the ranks compute the same from the same messages.
  virtual std::size_t next(std::size_t possible, std::uint64_t state) = 0;
};

/// A world in which everything that a network and an operating system leave open follows from one number.
///
/// Time is virtual: it passes while messages are under way, at each step of a rank, and jumps to the next event where
/// no rank can go on. So time limits cost no time, and the same seed gives the same run.
struct simulation {
  std::uint64_t seed = 0;                                               ///< of the order of events and of the times
  std::chrono::nanoseconds message_time = std::chrono::milliseconds(1); ///< the most that most messages take
  std::chrono::nanoseconds step_time = std::chrono::microseconds(20); ///< the most from one event of a rank to its next
  fault_plan faults{};
  /// Where it is there it decides instead of the seed; then messages take no time, but arrive when it says so, and no
  /// time passes. Outlives the world.
  event_order* order = nullptr;
  bool yields_at_messages = true; ///< whether other ranks may go on wherever a message is started
  simulated_run* told = nullptr;  ///< gets what has happened when all ranks have ended; outlives the world

  /// What is wrong with it for so many ranks; empty where nothing is.
  std::string problem(int ranks) const {
    constexpr std::chrono::nanoseconds most = std::chrono::hours(24);
    if (message_time.count() < 0 || message_time > most || step_time.count() < 0 || step_time > most) {
      return "messages and steps of a simulation take 0 to 24 hours";
    }
    for (planned_fault const& each : faults.faults) {
      if (each.rank < 0 || each.rank >= ranks || each.message < 1 || each.time.count() < 0) {
        return "there is no " + each.text() + " of " + std::to_string(ranks) + " ranks";
      }
    }
    return {};
  }
};

} // namespace oktopk::in_process
