// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/breakdown.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/in_process_schedule.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/core/error.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace oktopk::in_process {
struct planned_fault;
}

namespace oktopk::detail {

/// One side of a message: what a rank sends, or its room for what it receives.
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
  void const* group = nullptr;                    ///< in which it is sent
  int fiber = 0;                                  ///< that owns it: its rank in the communicator of all ranks
  std::uint64_t number = 0;                       ///< in a simulation: of all messages of its rank
  in_process::planned_fault const* hit = nullptr; ///< in a simulation: what a planned fault does to it
  in_process_message* next = nullptr;             ///< in its line
};

/// The messages from one rank to another in one phase whose other side is missing, oldest first: all of them are sends,
/// or all are receives, since a send and a receive meet at once.
class in_process_line {
public:
  bool empty() const { return last_ == nullptr; }
  bool receives() const { return last_->receive; }
  void clear() { last_ = nullptr; }

  void push(in_process_message* message) {
    message->next = empty() ? message : std::exchange(last_->next, message);
    last_ = message;
  }

  in_process_message* pop() {
    in_process_message* const first = last_->next;
    last_ = first == last_ ? nullptr : last_;
    if (last_ != nullptr) {
      last_->next = first->next;
    }
    return first;
  }

private:
  in_process_message* last_ = nullptr; // whose next one is the first
};

inline void deliver(in_process_message& from, in_process_message& to) {
  std::size_t const bytes = from.size < to.size ? from.size : to.size;
  if (bytes > 0) {
    std::memcpy(to.data, from.data, bytes);
  }
  to.arrived = from.size;
  to.truncated = from.size > to.size;
  to.done = true;
  from.done = true;
}

/// Room for messages, which stays where it is; it only grows.
class in_process_messages {
public:
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

  void release(in_process_message* message) noexcept { spare_.push_back(message); } // `take` has made room

private:
  std::deque<in_process_message> storage_;
  std::vector<in_process_message*> spare_;
};

/// The place where ranks of one process hand their numbers over for an allreduce: the last one reduces for all.
class in_process_rendezvous {
public:
  /// True if all ranks have left the allreduce before.
  bool is_free() const { return left_ == 0; }
  /// True if all ranks have joined.
  bool is_over() const { return left_ > 0; }

  template <class T>
  void join(int rank, int ranks, std::span<T> data, reduction op) {
    if (arrived_ == 0) {
      data_.assign(static_cast<std::size_t>(ranks), nullptr);
      sizes_.assign(static_cast<std::size_t>(ranks), 0);
    }
    data_[static_cast<std::size_t>(rank)] = data.data();
    sizes_[static_cast<std::size_t>(rank)] = data.size();
    if (++arrived_ == ranks) {
      mismatch_ = std::any_of(sizes_.begin(), sizes_.end(), [&](std::size_t size) { return size != data.size(); });
      if (!mismatch_) {
        reduce<T>(data.size(), op);
      }
      arrived_ = 0;
      left_ = ranks;
    }
  }

  void leave() {
    left_ -= 1;
    if (mismatch_) {
      throw error(fault::communication, "an allreduce was joined with different lengths");
    }
  }

private:
  // In the order of ranks.
  template <class T>
  void reduce(std::size_t count, reduction op) {
    for (std::size_t i = 0; i < count; ++i) {
      T result = static_cast<T*>(data_[0])[i];
      for (std::size_t rank = 1; rank < data_.size(); ++rank) {
        result = reduce_two(op, result, static_cast<T*>(data_[rank])[i]);
      }
      for (void* const target : data_) {
        static_cast<T*>(target)[i] = result;
      }
    }
  }

  int arrived_ = 0;
  int left_ = 0;
  std::vector<void*> data_;
  std::vector<std::size_t> sizes_;
  bool mismatch_ = false;
};

/// State that the communicators of one group of ranks share: their messages, and what each rank knows of the group's
/// end.
class in_process_group {
public:
  /// `fibers`: of the ranks, ascending.
  in_process_group(in_process_schedule& schedule, in_process_messages& messages, std::vector<int> const& fibers)
      : schedule_(schedule), messages_(messages), lines_(fibers.size() * fibers.size() * phase_count),
        members_(fibers.size()) {
    for (std::size_t rank = 0; rank < fibers.size(); ++rank) {
      members_[rank].fiber = fibers[rank];
    }
  }

  int size() const { return static_cast<int>(members_.size()); }
  std::chrono::nanoseconds elapsed() const { return schedule_.now(); }

  void set_time_limit(int rank, std::chrono::nanoseconds limit) { of(rank).limit = limit; }
  std::chrono::nanoseconds time_limit(int rank) const { return members_[static_cast<std::size_t>(rank)].limit; }
  void begin_operation(int rank, std::string_view name, std::int64_t number) { of(rank).doing.begin(name, number); }

  in_process_message* post(in_process_message message) {
    throw_if_broken(message.owner);
    message.fiber = of(message.owner).fiber;
    message.group = this;
    if (in_process_events* const events = schedule_.events()) {
      events->before_message(schedule_, message.fiber);
      throw_if_broken(message.owner); // as others may have gone on meanwhile
      return events->post(*this, message);
    }
    return meet(message);
  }

  /// Joins a message and its other side, or lets it wait for that.
  in_process_message* meet(in_process_message const& message) {
    in_process_message* const added = keep(message);
    in_process_line& waiting = message.receive ? line(message.peer, message.owner, message.use)
                                               : line(message.owner, message.peer, message.use);
    if (waiting.empty() || waiting.receives() == message.receive) {
      waiting.push(added);
      return added;
    }
    in_process_message* const other = waiting.pop();
    in_process_message& from = message.receive ? *other : *added;
    in_process_message& to = message.receive ? *added : *other;
    schedule_.events() != nullptr ? schedule_.events()->launch(from, &to) : deliver(from, to);
    return added;
  }

  /// A message that meets no other side.
  in_process_message* keep(in_process_message const& message) { return messages_.take(message); }
  void release(in_process_message* message) noexcept { messages_.release(message); }

  /// A rank leaves the others in the middle of something. All of its messages end: also one whose request was lost
  /// when the start of the next one threw. What has not arrived yet never will.
  void note_cancelled(int rank) noexcept {
    drop_messages_of(rank);
    in_process_events* const events = schedule_.events();
    if (events != nullptr) {
      events->recall(of(rank).fiber, this);
    }
    if (!of(rank).broken && (events == nullptr || !events->has_died(of(rank).fiber))) {
      try {
        give_up(rank, order_is_lost(rank));
      } catch (std::exception const&) { // no memory for the sentence
        give_up(rank, fault::communication, {});
      }
    }
  }

  void give_up(int rank, fault code, std::string const& reason) noexcept {
    of(rank).broken.note(code, reason);
    for (member& other : members_) {
      if (!other.broken && other.teller < 0) {
        other.teller = rank;
        other.told.note(code, reason);
      }
    }
  }

  void give_up(int rank, error const& why) noexcept {
    try {
      give_up(rank, why.code(), why.sentence());
    } catch (std::exception const&) {
      give_up(rank, why.code(), {});
    }
  }

  /// For each call that starts a message.
  void throw_if_broken(int rank) {
    member& mine = of(rank);
    mine.broken.throw_if_happened();
    if (mine.teller >= 0) {
      throw abandoned(mine);
    }
  }

  /// Lets other ranks run until `ready` holds; `report` gives the `wait_report`, should that never happen.
  template <class Ready, class Report>
  void wait(int rank, Ready const& ready, Report const& report) {
    member& mine = of(rank);
    auto const ready_or_told = [&] { return ready() || mine.teller >= 0 || mine.broken; };
    switch (schedule_.wait(
        mine.fiber, ready_or_told, [&] { return report().open(); }, mine.limit)) {
    case wait_end::ready:
      if (!ready()) {
        throw_if_broken(rank);
      }
      return;
    case wait_end::late: {
      error const why = report().timed_out(rank, mine.doing, mine.limit);
      give_up(rank, why);
      throw why;
    }
    case wait_end::stuck:
      mine.broken.note(fault::deadlock, schedule_.stuck_report());
      throw error(fault::deadlock, schedule_.stuck_report());
    }
  }

  template <class T>
  void allreduce(int rank, std::span<T> data, reduction op, phase use) {
    throw_if_broken(rank);
    if (schedule_.events() != nullptr) {
      schedule_.events()->before_message(schedule_, of(rank).fiber);
      throw_if_broken(rank);
    }
    auto const everybody = [&] {
      return wait_report("for everybody to join an allreduce in phase " + std::string(name(use)));
    };
    wait(
        rank, [&] { return rendezvous_.is_free(); }, everybody);
    throw_if_broken(rank); // somebody may have left in vain, and with its numbers
    rendezvous_.join(rank, size(), data, op);
    wait(
        rank, [&] { return rendezvous_.is_over(); }, everybody);
    rendezvous_.leave();
  }

  /// The ranks that have not ended, once all of them ask for it: a group, and this rank's place there.
  std::pair<in_process_group*, int> survivors(int rank) {
    member& mine = of(rank);
    std::size_t const which = mine.successions++;
    auto const everybody = [&] {
      for (member const& other : members_) {
        if (other.successions <= which && !schedule_.has_finished(other.fiber)) {
          return false;
        }
      }
      return true;
    };
    auto const describe = [] { return std::string("for all that are left to join the survivors"); };
    wait_end const end = schedule_.wait(
        mine.fiber, [&] { return successors_.size() > which || everybody(); }, describe, mine.limit);
    if (end == wait_end::stuck) {
      throw error(fault::deadlock, schedule_.stuck_report());
    }
    if (end == wait_end::late) {
      mine.successions -= 1;
      throw wait_report(describe()).timed_out(rank, mine.doing, mine.limit);
    }
    if (successors_.size() == which) {
      std::vector<int> alive;
      for (member const& other : members_) {
        if (!schedule_.has_finished(other.fiber)) {
          alive.push_back(other.fiber);
        }
      }
      successors_.push_back(std::make_unique<in_process_group>(schedule_, messages_, alive));
    }
    in_process_group& next = *successors_[which];
    for (int place = 0; place < next.size(); ++place) {
      if (next.of(place).fiber == mine.fiber) {
        next.of(place).limit = mine.limit;
        return {&next, place};
      }
    }
    throw error(fault::communication, "rank " + std::to_string(rank) + " came too late to be one of the survivors");
  }

  /// For a rank that ends: its unmatched messages lie in memory that goes with it.
  void forget(int fiber) {
    if (schedule_.events() != nullptr) {
      schedule_.events()->recall(fiber, nullptr);
    }
    for (int rank = 0; rank < size(); ++rank) {
      if (of(rank).fiber == fiber) {
        drop_messages_of(rank);
      }
    }
    for (auto const& each : successors_) {
      each->forget(fiber);
    }
  }

private:
  struct member {
    int fiber = 0;
    breakdown broken;
    int teller = -1; ///< who has told this rank that it has given up
    breakdown told;
    operation doing;
    std::chrono::nanoseconds limit = usual_time_limit;
    std::size_t successions = 0; ///< calls of `survivors`
  };

  member& of(int rank) { return members_[static_cast<std::size_t>(rank)]; }

  in_process_line& line(int from, int to, phase use) {
    auto const pair = static_cast<std::size_t>(from) * members_.size() + static_cast<std::size_t>(to);
    return lines_[pair * phase_count + static_cast<std::size_t>(use)];
  }

  void drop_messages_of(int rank) noexcept {
    for (int peer = 0; peer < size(); ++peer) {
      for (int use = 0; use < phase_count; ++use) {
        in_process_line& to_rank = line(peer, rank, static_cast<phase>(use));
        if (!to_rank.empty() && to_rank.receives()) {
          to_rank.clear();
        }
        in_process_line& from_rank = line(rank, peer, static_cast<phase>(use));
        if (!from_rank.empty() && !from_rank.receives()) {
          from_rank.clear();
        }
      }
    }
  }

  static error abandoned(member& mine) {
    error why = abandoned_by(mine.teller, mine.doing, mine.told.reason());
    mine.broken.note(why.code(), why.sentence());
    return why;
  }

  in_process_schedule& schedule_;
  in_process_messages& messages_;
  std::vector<in_process_line> lines_; // by sender, receiver and phase, so that no message looks for its other side
  std::vector<member> members_;
  in_process_rendezvous rendezvous_;
  std::vector<std::unique_ptr<in_process_group>> successors_;
};

} // namespace oktopk::detail
