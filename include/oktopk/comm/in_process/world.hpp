// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/cancel_on_unwind.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/in_process/fiber.hpp>
#include <oktopk/core/error.hpp>
#include <oktopk/core/timed_out.hpp>

#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace oktopk::detail {

struct in_process_message {
  bool receive = false;
  bool done = false;
  bool truncated = false;
  int owner = 0;
  int peer = 0;
  phase use = phase::control;
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::size_t arrived = 0;
};

// Ranks as fibres of one thread: the one that runs goes on until it waits for something that is not there yet.
class in_process_world {
public:
  explicit in_process_world(int ranks)
      : posted_(static_cast<std::size_t>(ranks)), fibers_(posted_.size()), has_cancelled_(posted_.size(), 0) {}

  int size() const { return static_cast<int>(posted_.size()); }

  in_process_message* post(in_process_message const& message) {
    auto& mine = posted_[static_cast<std::size_t>(message.receive ? message.owner : message.peer)];
    for (auto other = mine.begin(); other != mine.end(); ++other) {
      if (matches(**other, message)) {
        in_process_message* const partner = *other;
        mine.erase(other);
        in_process_message* const added = take(message);
        message.receive ? deliver(*partner, *added) : deliver(*added, *partner);
        return added;
      }
    }
    in_process_message* const added = take(message);
    mine.push_back(added);
    return added;
  }

  void release(in_process_message* message) noexcept { spare_.push_back(message); } // `take` has made room

  /// Ends a message that its owner has not waited for; if no partner has met it, none will.
  void withdraw(in_process_message* message) noexcept {
    if (!message->done) {
      std::erase(posted_[static_cast<std::size_t>(message->receive ? message->owner : message->peer)], message);
    }
    release(message);
  }

  /// From now on a rank can neither send nor receive: it has left others in the middle of something.
  void note_cancelled(int rank) noexcept { has_cancelled_[static_cast<std::size_t>(rank)] = 1; }

  /// Throws where a rank cannot send and receive any more.
  void check_order(int rank) const {
    if (has_cancelled_[static_cast<std::size_t>(rank)] != 0) {
      throw stuck_ ? error(fault::deadlock, stuck_report_) : order_is_lost(rank);
    }
  }

  /// Waits of all ranks end with an error after so long; never where it is zero.
  void set_time_limit(std::chrono::nanoseconds limit) { time_limit_ = limit; }

  /// Lets other ranks run until `ready` holds; `describe` says what for, should nobody be able to go on.
  void wait(int rank, std::function<bool()> const& ready, std::function<std::string()> const& describe) {
    auto const start = clock::now();
    // Once nobody could go on nothing is delivered any more: what is there may belong to a rank that is being unwound.
    while (stuck_ || !ready()) {
      if (stuck_) {
        throw error(fault::deadlock, stuck_report_);
      }
      if (is_late(start)) {
        throw timed_out(rank, describe(), time_limit_);
      }
      waits_[static_cast<std::size_t>(rank)] = {&ready, &describe, start};
      fibers_[static_cast<std::size_t>(rank)]->leave();
      waits_[static_cast<std::size_t>(rank)] = {};
    }
  }

  /// Runs one body per rank to its end and gives what each of them threw.
  std::vector<std::exception_ptr> run(std::function<void(int)> const& body, std::size_t stack_bytes) {
    waits_.assign(fibers_.size(), {});
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      fibers_[rank] = std::make_unique<fiber>([&body, rank] { body(static_cast<int>(rank)); }, stack_bytes);
    }
    bool unfinished = true;
    while (unfinished) {
      unfinished = false;
      bool moved = false;
      for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
        if (fibers_[rank]->finished()) {
          continue;
        }
        if (stuck_ || waits_[rank].ready == nullptr || (*waits_[rank].ready)() || is_late(waits_[rank].start)) {
          fibers_[rank]->resume();
          moved = true;
          if (fibers_[rank]->finished()) {
            forget(static_cast<int>(rank));
          }
        }
        unfinished = unfinished || !fibers_[rank]->finished();
      }
      if (unfinished && !moved) {
        declare_stuck();
      }
    }
    std::vector<std::exception_ptr> failures;
    for (auto const& each : fibers_) {
      failures.push_back(each->failure());
    }
    return failures;
  }

  struct rendezvous {
    int arrived = 0;
    int left = 0;
    std::vector<void*> data;
    std::vector<std::size_t> sizes;
    bool mismatch = false;
    int leaver = -1; ///< a rank that has joined, and has not waited for the result
  };

  rendezvous& meeting() { return meeting_; }

private:
  using clock = std::chrono::steady_clock;

  struct wait_state {
    std::function<bool()> const* ready = nullptr;
    std::function<std::string()> const* describe = nullptr;
    clock::time_point start{};
  };

  bool is_late(clock::time_point start) const {
    return time_limit_ > std::chrono::nanoseconds(0) && clock::now() - start > time_limit_;
  }

  static bool matches(in_process_message const& a, in_process_message const& b) {
    return a.receive != b.receive && a.owner == b.peer && a.peer == b.owner && a.use == b.use;
  }

  static void deliver(in_process_message& from, in_process_message& to) {
    std::size_t const bytes = from.size < to.size ? from.size : to.size;
    if (bytes > 0) {
      std::memcpy(to.data, from.data, bytes);
    }
    to.arrived = from.size;
    to.truncated = from.size > to.size;
    to.done = true;
    from.done = true;
  }

  in_process_message* take(in_process_message const& message) {
    if (spare_.empty()) {
      if (spare_.capacity() <= storage_.size()) {
        spare_.reserve(2 * storage_.size() + 8); // room for all that will be released
      }
      spare_.push_back(&storage_.emplace_back());
    }
    in_process_message* const slot = spare_.back();
    spare_.pop_back();
    *slot = message;
    return slot;
  }

  // What a rank leaves unmatched when it ends lies in memory that goes with it.
  void forget(int rank) {
    for (auto& queue : posted_) {
      std::erase_if(queue, [rank](in_process_message const* message) { return message->owner == rank; });
    }
  }

  void declare_stuck() {
    stuck_report_ = "deadlock: no rank can go on;";
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      stuck_report_ +=
          " rank " + std::to_string(rank) + (has_cancelled_[rank] != 0 ? " has cancelled messages and" : "");
      if (fibers_[rank]->finished()) {
        stuck_report_ += fibers_[rank]->failure() ? " has failed;" : " has returned;";
      } else {
        stuck_report_ += " waits " + (*waits_[rank].describe)() + ";";
      }
    }
    stuck_report_.pop_back();
    stuck_ = true;
  }

  // Per receiving rank: sends that found no receive and receives that found no send, oldest first.
  std::vector<std::deque<in_process_message*>> posted_;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<wait_state> waits_;
  std::deque<in_process_message> storage_;
  std::vector<in_process_message*> spare_;
  std::vector<char> has_cancelled_; // by rank
  rendezvous meeting_;
  std::chrono::nanoseconds time_limit_{0};
  bool stuck_ = false;
  std::string stuck_report_;
};

} // namespace oktopk::detail
