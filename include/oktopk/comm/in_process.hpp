// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/fiber.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/core/workspace.hpp>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

namespace oktopk {

namespace detail {

class in_process_group;
struct in_process_message;

enum class wait_end : std::uint8_t { ready, late, stuck };

/// Ranks as fibres of one thread. Here a rank runs until it waits for something that is not there yet, and a message
/// arrives when its two sides have met; a derived schedule may decide otherwise.
class in_process_schedule {
public:
  using time = std::chrono::nanoseconds;
  static constexpr time never = time::max();

  struct wait_state {
    bool waits = false;
    std::function<bool()> ready{}; ///< these two refer to objects of the waiting rank, and so own no memory
    std::function<std::string()> describe{};
    time until = never; ///< the time after which the wait is late
    bool late = false;

    bool is_over(time at) {
      bool const is_ready = ready();
      late = !is_ready && until < at;
      return is_ready || late;
    }
  };

  explicit in_process_schedule(int ranks) : fibers_(static_cast<std::size_t>(ranks)), waits_(fibers_.size()) {}
  in_process_schedule& operator=(in_process_schedule&&) = delete;
  virtual ~in_process_schedule() = default;

  /// Time since the start of the run.
  virtual time now() const { return std::chrono::steady_clock::now() - start_; }
  /// Called when a rank comes to a wait, or leaves it; throws if it may not continue.
  virtual void step(int /*fiber*/) {}
  /// Called before a rank starts a message: others may run first; throws as `step` does.
  virtual void before_message(int /*fiber*/) {}
  /// Hands a message to its group, or handles it in another way; returns the message that its rank waits for.
  virtual in_process_message* post(in_process_group& group, in_process_message const& message);
  /// Called when the two sides of a message have met.
  virtual void launch(in_process_message& from, in_process_message* to);
  /// No message from or to a rank arrives any more; in one group, or in all groups if `group` is null.
  virtual void recall(int /*fiber*/, void const* /*group*/) noexcept {}
  /// True if `step` has ended the rank without telling anybody.
  virtual bool has_died(int /*fiber*/) const { return false; }

  int size() const { return static_cast<int>(fibers_.size()); }
  wait_state& state(int fiber) { return waits_[index(fiber)]; }
  bool has_finished(int fiber) const { return fibers_[index(fiber)]->finished(); }
  bool has_ended() const {
    return std::all_of(fibers_.begin(), fibers_.end(), [](auto const& each) { return each->finished(); });
  }

  /// True after a deadlock. From then on all ranks run again, one after the other, and their waits end.
  bool is_stuck() const { return stuck_; }
  std::string const& stuck_report() const { return stuck_report_; }

  /// Returns at + by, or `never` if that is too large.
  static time sum(time at, time by) { return by < never - at ? at + by : never; }

  /// Lets other ranks run until `ready` is true, or until `limit` has passed, unless that is zero. `describe` returns
  /// the aim of the wait, for the report of a deadlock.
  template <class Ready, class Describe>
  wait_end wait(int fiber, Ready const& ready, Describe const& describe, time limit) {
    step(fiber);
    // After a deadlock nothing is delivered any more: a message may belong to a rank whose stack is being unwound.
    if (!stuck_ && ready()) {
      return wait_end::ready;
    }
    wait_state& mine = state(fiber);
    time const deadline = limit > time(0) ? sum(now(), limit) : never;
    mine = {true, std::cref(ready), std::cref(describe), deadline};
    if (!stuck_) {
      fibers_[index(fiber)]->leave();
    }
    wait_end const end = stuck_ ? wait_end::stuck : mine.late ? wait_end::late : wait_end::ready;
    mine = {};
    step(fiber);
    return end;
  }

  /// Runs one body per rank to its end. Returns the exception of each rank. `leave(rank)` is called when a rank has
  /// ended.
  std::vector<std::exception_ptr> run(std::function<void(int)> const& body, std::size_t stack_bytes,
                                      std::function<void(int)> const& leave) {
    for (std::size_t rank = 0; rank < fibers_.size(); ++rank) {
      try {
        fibers_[rank] = std::make_unique<fiber>([&body, rank] { body(static_cast<int>(rank)); }, stack_bytes);
      } catch (std::bad_alloc const&) {
        throw error(fault::option_out_of_range,
                    "in_process::run: no memory for the stack of rank " + std::to_string(rank) + " of " +
                        std::to_string(size()) + ": stack_bytes = " + std::to_string(stack_bytes) +
                        " for each rank; a limit of addresses (ulimit -v) counts all of them");
      }
    }
    leave_ = &leave;
    fiber::overflow_notice const notice;
    run_all();
    std::vector<std::exception_ptr> failures;
    for (auto const& each : fibers_) {
      failures.push_back(each->failure());
    }
    return failures;
  }

  /// Called from outside of all ranks: runs one rank until it leaves its fibre or ends.
  void go_on(int fiber) {
    fibers_[index(fiber)]->resume();
    if (has_finished(fiber)) {
      (*leave_)(fiber);
    }
  }

  /// Called from inside a rank: lets others run.
  void pause(int fiber) {
    state(fiber) = {};
    fibers_[index(fiber)]->leave();
  }

  [[gnu::cold]] void declare_stuck() {
    stuck_report_ = "deadlock: no rank can go on;";
    for (int rank = 0; rank < size(); ++rank) {
      stuck_report_ += " rank " + std::to_string(rank);
      if (!has_finished(rank)) {
        stuck_report_ += state(rank).waits ? " waits " + state(rank).describe() + ";" : " stands still;";
      } else if (has_died(rank)) {
        stuck_report_ += " has died;";
      } else {
        stuck_report_ += fibers_[index(rank)]->failure() ? " has failed;" : " has returned;";
      }
    }
    stuck_report_.pop_back();
    stuck_ = true;
  }

protected:
  /// Lets ranks go on until all have ended.
  virtual void run_all() {
    while (!has_ended()) {
      bool moved = false;
      auto const at = now(); // one time for each turn is exact enough for limits
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

private:
  static std::size_t index(int fiber) { return static_cast<std::size_t>(fiber); }

  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<wait_state> waits_;
  std::function<void(int)> const* leave_ = nullptr;
  bool stuck_ = false;
  std::string stuck_report_;
};

/// One side of a message: the bytes that a rank sends, or its room for the bytes that it receives.
struct in_process_message {
  bool receives = false;
  bool done = false;
  bool truncated = false;
  int owner = 0;
  int peer = 0;
  phase use = phase::control;
  std::byte* data = nullptr;
  std::size_t size = 0;
  std::size_t arrived = 0;
  void const* note = nullptr;         ///< of a derived schedule alone
  in_process_message* next = nullptr; ///< next message in its line
};

/// The messages from one rank to another in one phase whose other side is missing, oldest first: all of them are sends,
/// or all are receives, since a send and a receive meet at once.
class in_process_line {
public:
  bool empty() const { return last_ == nullptr; }
  bool receives() const { return last_->receives; }
  int owner() const { return last_->owner; }
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

inline void in_process_schedule::launch(in_process_message& from, in_process_message* to) {
  deliver(from, *to);
}

using in_process_messages = object_pool<in_process_message>;

/// A rank of a group: the state that its communicator shares with the group.
struct in_process_member : shared_state {
  in_process_group* group = nullptr;
  int rank = 0;
  int fiber = 0;
  int aborted_by = -1;           ///< rank that told this rank that it has given up
  revocation received;           ///< the reason of that rank
  void* joined = nullptr;        ///< its values in an allreduce
  std::size_t joined_size = 0;   ///< number of these values
  std::size_t successions = 0;   ///< calls of `survivors`
  error lost = order_is_lost(0); ///< reason of a cancel: made before memory can be missing
};

/// State that the communicators of one group of ranks share: their messages, and for each rank the failures that it
/// knows of.
class in_process_group {
public:
  using member = in_process_member;

  /// `fibers`: the fibre of each rank, ascending.
  in_process_group(in_process_schedule& schedule, in_process_messages& messages, std::vector<int> const& fibers)
      : schedule_(schedule), messages_(messages), lines_(fibers.size() * fibers.size() * phase_count),
        members_(fibers.size()) {
    for (std::size_t rank = 0; rank < fibers.size(); ++rank) {
      members_[rank].group = this;
      members_[rank].rank = static_cast<int>(rank);
      members_[rank].fiber = fibers[rank];
      members_[rank].lost = order_is_lost(static_cast<int>(rank));
    }
  }

  int size() const { return static_cast<int>(members_.size()); }
  std::chrono::nanoseconds elapsed() const { return schedule_.now(); }
  member& of(int rank) { return members_[static_cast<std::size_t>(rank)]; }

  in_process_message* post(in_process_message const& message) {
    begin_step(of(message.owner));
    return schedule_.post(*this, message);
  }

  /// Joins a message with its other side, or lets it wait for that.
  in_process_message* meet(in_process_message const& message) {
    in_process_message* const added = keep(message);
    in_process_line& waiting = message.receives ? line(message.peer, message.owner, message.use)
                                                : line(message.owner, message.peer, message.use);
    if (waiting.empty() || waiting.receives() == message.receives) {
      waiting.push(added);
      return added;
    }
    in_process_message* const other = waiting.pop();
    in_process_message& from = message.receives ? *other : *added;
    in_process_message& to = message.receives ? *added : *other;
    schedule_.launch(from, &to);
    return added;
  }

  /// Stores a message; does not look for its other side.
  in_process_message* keep(in_process_message const& message) { return messages_.take(message); }
  void release(in_process_message* message) noexcept { messages_.release(message); }

  /// A rank cancels: it leaves the others in the middle of an operation. All of its messages end, also one whose
  /// request was lost when the start of the next one threw. Messages that have not arrived yet never arrive.
  void note_cancelled(member& mine) noexcept {
    drop_messages_of(mine.rank);
    schedule_.recall(mine.fiber, this);
    if (!mine.broken && !schedule_.has_died(mine.fiber)) {
      abort(mine, mine.lost);
    }
  }

  void abort(member& mine, error const& why) noexcept {
    mine.broken.note(why);
    for (member& other : members_) {
      if (!other.broken && other.aborted_by < 0) {
        other.aborted_by = mine.rank;
        other.received.note(why);
      }
    }
  }

  /// Lets other ranks run until `ready` is true. `report` returns the `wait_report` for the error if that never
  /// happens.
  template <class Ready, class Report>
  void wait(member& mine, Ready const& ready, Report const& report) {
    auto const ready_or_told = [&] { return ready() || mine.aborted_by >= 0 || mine.broken; };
    auto const describe = [&] { return report().open(); };
    wait_end const end = schedule_.wait(mine.fiber, ready_or_told, describe, mine.time_limit);
    if (end == wait_end::late) {
      error const why = report().timed_out(mine.rank, mine.during, mine.time_limit);
      abort(mine, why);
      throw why;
    }
    if (end == wait_end::stuck) {
      mine.broken.fail(error(fault::deadlock, schedule_.stuck_report()));
    }
    if (!ready()) {
      throw_if_broken(mine);
    }
  }

  /// The last one to join reduces for all, in the order of ranks.
  template <class T>
  void allreduce(member& mine, std::span<T> data, reduction op, phase use) {
    begin_step(mine);
    auto const everybody = [&] {
      return wait_report("for everybody to join an allreduce in phase " + std::string(name(use)));
    };
    wait(
        mine, [&] { return still_in_allreduce_ == 0; }, everybody);
    throw_if_broken(mine); // a rank may have joined, then given up and left, and its values with it
    mine.joined = data.data();
    mine.joined_size = data.size();
    if (++joined_ == size()) {
      lengths_agree_ = std::all_of(members_.begin(), members_.end(),
                                   [&](member const& each) { return each.joined_size == data.size(); });
      for (std::size_t i = 0; i < (lengths_agree_ ? data.size() : 0); ++i) {
        T result = static_cast<T*>(members_[0].joined)[i];
        for (std::size_t rank = 1; rank < members_.size(); ++rank) {
          result = reduce_two(op, result, static_cast<T*>(members_[rank].joined)[i]);
        }
        for (member const& each : members_) {
          static_cast<T*>(each.joined)[i] = result;
        }
      }
      joined_ = 0;
      still_in_allreduce_ = size();
    }
    wait(
        mine, [&] { return still_in_allreduce_ > 0; }, everybody);
    still_in_allreduce_ -= 1;
    if (!lengths_agree_) {
      throw error(fault::communication, "an allreduce was joined with different lengths");
    }
  }

  /// Returns this rank's member in a group of the ranks that have not ended. Waits until all of them have asked for it.
  member& survivors(member& mine) {
    std::size_t const which = mine.successions++;
    auto const everybody = [&] {
      return std::all_of(members_.begin(), members_.end(), [&](member const& other) {
        return other.successions > which || schedule_.has_finished(other.fiber);
      });
    };
    auto const ready = [&] { return successors_.size() > which || everybody(); };
    auto const describe = [] { return std::string("for all that are left to join the survivors"); };
    wait_end const end = schedule_.wait(mine.fiber, ready, describe, mine.time_limit);
    if (end == wait_end::stuck) {
      throw error(fault::deadlock, schedule_.stuck_report());
    }
    if (end == wait_end::late) {
      mine.successions -= 1;
      throw wait_report(describe()).timed_out(mine.rank, mine.during, mine.time_limit);
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
    for (member& next : successors_[which]->members_) {
      if (next.fiber == mine.fiber) {
        next.time_limit = mine.time_limit;
        return next;
      }
    }
    throw error(fault::communication,
                "rank " + std::to_string(mine.rank) + " came too late to be one of the survivors");
  }

  /// Called when a rank ends: drops its unmatched messages, whose memory goes with the rank.
  void forget(int fiber) {
    schedule_.recall(fiber, nullptr);
    for (member const& each : members_) {
      if (each.fiber == fiber) {
        drop_messages_of(each.rank);
      }
    }
    for (auto const& each : successors_) {
      each->forget(fiber);
    }
  }

private:
  // Called by each call that starts a message.
  void begin_step(member& mine) {
    throw_if_broken(mine);
    schedule_.before_message(mine.fiber);
    throw_if_broken(mine); // other ranks may have run meanwhile
  }

  static void throw_if_broken(member& mine) {
    mine.broken.throw_if_happened();
    if (mine.aborted_by >= 0) {
      mine.broken.fail(abandoned_by(mine.aborted_by, mine.during, mine.received.reason()));
    }
  }

  in_process_line& line(int from, int to, phase use) {
    auto const pair = static_cast<std::size_t>(from) * members_.size() + static_cast<std::size_t>(to);
    return lines_[pair * phase_count + static_cast<std::size_t>(use)];
  }

  void drop_messages_of(int rank) noexcept {
    for (int peer = 0; peer < size(); ++peer) {
      for (int use = 0; use < phase_count; ++use) {
        for (auto* const each :
             {&line(peer, rank, static_cast<phase>(use)), &line(rank, peer, static_cast<phase>(use))}) {
          if (!each->empty() && each->owner() == rank) {
            each->clear();
          }
        }
      }
    }
  }

  in_process_schedule& schedule_;
  in_process_messages& messages_;
  std::vector<in_process_line> lines_; // by sender, receiver and phase, so that a message finds its other side at once
  std::vector<member> members_;
  int joined_ = 0;
  int still_in_allreduce_ = 0;
  bool lengths_agree_ = true;
  std::vector<std::unique_ptr<in_process_group>> successors_;
};

inline in_process_message* in_process_schedule::post(in_process_group& group, in_process_message const& message) {
  return group.meet(message);
}

} // namespace detail

/// One of P ranks inside one process: for tests, for debugging without a launcher, and for several ranks on one device.
///
/// Made by `in_process::run` alone. A send completes when it is received (as the strictest MPI would do it), so a
/// program that relies on buffering deadlocks here, and is told so: when every rank waits, each rank gets an `error`
/// that says which rank waits for what. A rank that gives up tells all others at once. Each rank has its own time
/// limit; zero stands for none. If no rank can continue, that is an error at once.
class in_process_communicator : public detail::limited_communicator<in_process_communicator, detail::in_process_member,
                                                                    detail::in_process_member*> {
public:
  using request = detail::held_request<in_process_communicator, detail::in_process_message*>;
  using bulk_request = request;
  static constexpr bool tells_sizes() { return true; }

  explicit in_process_communicator(detail::in_process_member& member) : limited_communicator(&member) {}

  int size() const { return group().size(); }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    return post(false, peer, use, const_cast<std::byte*>(out.data()), out.size());
  }

  request irecv(std::span<std::byte> in, int peer, phase use) { return post(true, peer, use, in.data(), in.size()); }

  void wait_all(std::span<request> requests) {
    if (std::none_of(requests.begin(), requests.end(), [](request const& each) { return each.active(); })) {
      return;
    }
    auto const is_done = [](request const& each) { return !each.active() || each.message_->done; };
    auto const overflows = [](request const& each) { return each.active() && each.message_->truncated; };
    auto const are_over = [&] {
      return std::all_of(requests.begin(), requests.end(), is_done) ||
             std::any_of(requests.begin(), requests.end(), overflows);
    };
    group().wait(*shared_, are_over, [&] { return detail::wait_report(requests, is_done); });
    for (request& each : requests) {
      if (each.active() && each.message_->done) {
        complete(each);
      }
    }
  }

  void cancel(std::span<request> requests) noexcept {
    group().note_cancelled(*shared_);
    for (request& each : requests) {
      if (each.active()) {
        group().release(each.take());
      }
    }
  }

  /// Time since the ranks began.
  std::chrono::nanoseconds elapsed() const { return group().elapsed(); }

  /// Tells all ranks that this one cannot continue. Their waits for messages that have not arrived, and all messages
  /// that they start, end with an `error` (fault::abandoned) with this reason. A wait beyond the time limit and
  /// `cancel` do the same.
  void abort(error const& why) noexcept { group().abort(*shared_, why); }

  /// A communicator of all ranks that have not ended, in their order, for the work after this one has failed.
  ///
  /// Collective among those ranks: waits until each of them has called it or ended; an `error` (fault::timed_out) if
  /// that takes longer than the time limit. The new communicator has the same limit. Sends nothing.
  in_process_communicator survivors() { return in_process_communicator(group().survivors(*shared_)); }

  template <class T>
  void allreduce(std::span<T> data, reduction op, phase use) {
    group().allreduce(*shared_, data, op, use);
  }

private:
  detail::in_process_group& group() const { return *shared_->group; }

  request post(bool receives, int peer, phase use, std::byte* data, std::size_t size) {
    if (peer < 0 || peer >= group().size() || peer == rank()) {
      throw error(fault::communication, "rank " + std::to_string(rank()) + " has no peer " + std::to_string(peer));
    }
    return request(
        group().post({.receives = receives, .owner = rank(), .peer = peer, .use = use, .data = data, .size = size}));
  }

  void complete(request& finished) {
    detail::in_process_message const message = *finished.message_;
    finished.bytes_ = message.arrived;
    group().release(finished.take());
    if (message.truncated) {
      throw detail::exceeds_room(message.arrived, message.peer, message.size);
    }
  }
};

namespace detail {

// Distance of a rank that returned.
inline constexpr int no_cause = 4;

// Distance of an exception of a rank from the cause of a failure: 0 for the cause, more for a rank that waited too
// long, could not continue, or heard that another rank has given up.
inline int distance_from_cause(std::exception_ptr const& thrown) {
  try {
    if (thrown) {
      std::rethrow_exception(thrown);
    }
    return no_cause;
  } catch (error const& caught) {
    fault const code = caught.code();
    return code == fault::abandoned ? 3 : code == fault::deadlock ? 2 : code == fault::timed_out ? 1 : 0;
  } catch (...) {
    return 0;
  }
}

} // namespace detail

namespace in_process {

struct options {
  std::size_t stack_bytes = std::size_t(8) << 20; ///< per rank, at least `least_stack_bytes`; committed as it is used
  /// For tests: makes what decides the order of events; empty for the order that a run has by itself.
  std::function<std::unique_ptr<detail::in_process_schedule>(int ranks)> simulated{};
};

/// A smaller stack is refused: messages, an exception and a small kernel fit on this one.
inline constexpr std::size_t least_stack_bytes = std::size_t(64) << 10;

} // namespace in_process

namespace detail {

// What is the same for all bodies, which is compiled once.
inline std::vector<std::exception_ptr> run_ranks(int ranks, std::function<void(in_process_communicator)> const& body,
                                                 in_process::options const& how) {
  if (ranks < 1) {
    throw error(fault::option_out_of_range, "in_process::run needs at least one rank");
  }
  if (how.stack_bytes < in_process::least_stack_bytes) {
    throw error(fault::option_out_of_range, "in_process::run: stack_bytes = " + std::to_string(how.stack_bytes) +
                                                " is less than the least, " +
                                                std::to_string(in_process::least_stack_bytes));
  }
  std::vector<int> everybody(static_cast<std::size_t>(ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  auto const schedule = how.simulated ? how.simulated(ranks) : std::make_unique<in_process_schedule>(ranks);
  in_process_messages messages;
  in_process_group all(*schedule, messages, everybody);
  return schedule->run([&](int rank) { body(in_process_communicator(all.of(rank))); }, how.stack_bytes,
                       [&](int rank) { all.forget(rank); });
}

inline void rethrow_nearest_cause(std::vector<std::exception_ptr> const& thrown) {
  auto const first = std::min_element(thrown.begin(), thrown.end(), [](auto const& a, auto const& b) {
    return distance_from_cause(a) < distance_from_cause(b);
  });
  if (distance_from_cause(*first) < no_cause) {
    std::rethrow_exception(*first);
  }
}

} // namespace detail

namespace in_process {

/// Runs `body(in_process_communicator)` on `ranks` ranks. Returns the exception of each rank, null if it returned.
///
/// The ranks are fibres of the calling thread, no threads: one runs until it waits for a message. So a rank waits for
/// others by its communicator alone. One that waits by a std::barrier, a condition variable or an atomic stops the program
/// for ever, without an error, and so does a mutex that a rank holds in a call of the library. What is `thread_local` or
/// static is shared by all ranks. A rank's stack has `options::stack_bytes`, 8 MiB unless set; one that overflows ends the
/// program with a line on standard error, unless the program handles SIGSEGV itself. Throws `option_out_of_range` where
/// there is no memory for the stacks.
template <class Body>
std::vector<std::exception_ptr> run_and_collect(int ranks, Body&& body, options const& how = {}) {
  return detail::run_ranks(ranks, std::ref(body), how);
}

/// Runs `body(in_process_communicator)` on `ranks` ranks. If ranks failed, rethrows the exception that is nearest to
/// the cause, not one of a rank that only waited for, or heard of, a failed rank. See `run_and_collect` for what a rank
/// may wait for.
template <class Body>
void run(int ranks, Body&& body, options const& how = {}) {
  detail::rethrow_nearest_cause(run_and_collect(ranks, body, how));
}

} // namespace in_process

} // namespace oktopk
