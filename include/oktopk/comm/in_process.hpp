// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/in_process_group.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace oktopk {

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
  static constexpr bool tells_sizes = true;

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

// Distance of a rank that returned, or died by the events of a test.
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
    switch (caught.code()) {
    case fault::abandoned: return 3;
    case fault::deadlock: return 2;
    case fault::timed_out: return 1;
    default: return 0;
    }
  } catch (rank_died const&) {
    return no_cause;
  } catch (...) {
    return 0;
  }
}

} // namespace detail

namespace in_process {

struct options {
  std::size_t stack_bytes = std::size_t(8) << 20; ///< per rank, at least `least_stack_bytes`; committed as it is used
  /// For tests: makes what decides the order of events; empty for the order that a run has by itself.
  std::function<std::unique_ptr<detail::in_process_events>(int ranks)> simulated{};
};

/// A smaller stack is refused: messages, an exception and a small kernel fit on this one.
inline constexpr std::size_t least_stack_bytes = std::size_t(64) << 10;

/// Runs `body(in_process_communicator)` on `ranks` ranks. Returns the exception of each rank, null if it returned.
template <class Body>
std::vector<std::exception_ptr> run_and_collect(int ranks, Body&& body, options const& how = {}) {
  if (ranks < 1) {
    throw error(fault::option_out_of_range, "in_process::run needs at least one rank");
  }
  if (how.stack_bytes < least_stack_bytes) {
    throw error(fault::option_out_of_range, "in_process::run: stack_bytes = " + std::to_string(how.stack_bytes) +
                                                " is less than the least, " + std::to_string(least_stack_bytes));
  }
  std::vector<int> everybody(static_cast<std::size_t>(ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  detail::in_process_schedule schedule(ranks, how.simulated ? how.simulated(ranks)
                                                            : std::make_unique<detail::in_process_events>());
  detail::in_process_messages messages;
  detail::in_process_group all(schedule, messages, everybody);
  return schedule.run([&](int rank) { body(in_process_communicator(all.of(rank))); }, how.stack_bytes,
                      [&](int rank) { all.forget(rank); });
}

/// Runs `body(in_process_communicator)` on `ranks` ranks. If ranks failed, rethrows the exception that is nearest to
/// the cause, not one of a rank that only waited for, or heard of, a failed rank. A death by the events of a test is
/// no failure.
template <class Body>
void run(int ranks, Body&& body, options const& how = {}) {
  auto const all = run_and_collect(ranks, std::forward<Body>(body), how);
  auto const first = std::min_element(all.begin(), all.end(), [](auto const& a, auto const& b) {
    return detail::distance_from_cause(a) < detail::distance_from_cause(b);
  });
  if (detail::distance_from_cause(*first) < detail::no_cause) {
    std::rethrow_exception(*first);
  }
}

} // namespace in_process

} // namespace oktopk
