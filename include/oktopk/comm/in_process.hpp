// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/in_process/world.hpp>
#include <oktopk/comm/start_one_by_one.hpp>
#include <oktopk/core/error.hpp>

#include <exception>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace oktopk {

/// One of P ranks inside one process: for tests, for debugging without a launcher, and for several ranks on one device.
///
/// Made by `in_process::run` alone. Sends complete when they are received (as the strictest MPI would), so a program
/// that relies on buffering deadlocks here — and is told so: when every rank waits, each of them gets an `error` that
/// says who waits for what.
class in_process_communicator {
public:
  class request {
  public:
    request() = default;
    bool active() const { return message_ != nullptr; }
    bool receives() const { return receives_; }
    phase message_phase() const { return use_; }
    std::size_t bytes() const { return bytes_; }

  private:
    friend in_process_communicator;
    explicit request(detail::in_process_message* message)
        : message_(message), receives_(message->receive), use_(message->use) {}

    detail::in_process_message* message_ = nullptr;
    bool receives_ = false;
    phase use_ = phase::control;
    std::size_t bytes_ = 0;
  };

  using bulk_request = request;
  static constexpr bool tells_sizes = true;
  static constexpr bool ordered_by_instance = false;

  in_process_communicator(detail::in_process_world& world, int rank) : world_(&world), rank_(rank) {}

  int rank() const { return rank_; }
  int size() const { return world_->size(); }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    return post(false, peer, use, const_cast<std::byte*>(out.data()), out.size());
  }

  request irecv(std::span<std::byte> in, int peer, phase use) { return post(true, peer, use, in.data(), in.size()); }

  template <execution_space E>
  void start(E const&, std::span<bulk_message const> messages, std::span<request> requests) {
    start_one_by_one(*this, messages, requests);
  }

  void wait_all(std::span<request> requests) {
    while (wait_any(requests) < requests.size()) {
    }
  }

  void cancel(std::span<request> requests) noexcept {
    world_->note_cancelled(rank_);
    for (request& each : requests) {
      if (each.active()) {
        world_->withdraw(each.message_);
        each.message_ = nullptr;
      }
    }
  }

  /// Time limit of every wait of every rank; none where it is zero. That nobody can go on is an error at once.
  void set_time_limit(std::chrono::nanoseconds limit) { world_->set_time_limit(limit); }

  template <class T>
  void allreduce(std::span<T> data, reduction op, phase use) {
    world_->check_order(rank_);
    auto& meeting = world_->meeting();
    auto const everybody = [&] { return "for everybody to join an allreduce in phase " + std::string(name(use)); };
    world_->wait(
        rank_, [&] { return meeting.left == 0; }, everybody);
    if (meeting.arrived == 0) {
      meeting.data.assign(static_cast<std::size_t>(size()), nullptr);
      meeting.sizes.assign(static_cast<std::size_t>(size()), 0);
    }
    meeting.data[static_cast<std::size_t>(rank_)] = data.data();
    meeting.sizes[static_cast<std::size_t>(rank_)] = data.size();
    if (++meeting.arrived == size() && meeting.leaver < 0) {
      reduce(meeting, data.size(), op, static_cast<T*>(nullptr));
      meeting.arrived = 0;
      meeting.left = size();
    }
    try {
      world_->wait(
          rank_, [&] { return meeting.left > 0 || meeting.leaver >= 0; }, everybody);
    } catch (...) {
      meeting.leaver = rank_; // this rank's numbers are gone: nobody may reduce any more
      throw;
    }
    if (meeting.leaver >= 0) {
      throw error(fault::deadlock,
                  "rank " + std::to_string(meeting.leaver) + " has left an allreduce before all others had joined it");
    }
    meeting.left -= 1;
    if (meeting.mismatch) {
      throw error(fault::communication, "an allreduce was joined with different lengths");
    }
  }

  template <class MemorySpace>
  bool reaches() const {
    return Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;
  }

private:
  // Waits until one active request is complete, makes it inactive and gives its position; `requests.size()` when none
  // is active.
  std::size_t wait_any(std::span<request> requests) {
    std::size_t found = requests.size();
    bool any_active = false;
    for (request const& each : requests) {
      any_active = any_active || each.active();
    }
    if (!any_active) {
      return requests.size();
    }
    world_->wait(
        rank_,
        [&] {
          for (std::size_t i = 0; i < requests.size() && found == requests.size(); ++i) {
            if (requests[i].active() && requests[i].message_->done) {
              found = i;
            }
          }
          return found < requests.size();
        },
        [&] { return describe(requests); });
    complete(requests[found]);
    return found;
  }

  request post(bool receive, int peer, phase use, std::byte* data, std::size_t size) {
    if (peer < 0 || peer >= world_->size() || peer == rank_) {
      throw error(fault::communication, "rank " + std::to_string(rank_) + " has no peer " + std::to_string(peer));
    }
    world_->check_order(rank_);
    return request(world_->post({receive, false, false, rank_, peer, use, data, size, 0}));
  }

  void complete(request& finished) {
    detail::in_process_message* const message = finished.message_;
    finished.bytes_ = message->arrived;
    finished.message_ = nullptr;
    bool const truncated = message->truncated;
    std::string const what = truncated ? std::to_string(message->arrived) + " bytes from rank " +
                                             std::to_string(message->peer) + " exceed the " +
                                             std::to_string(message->size) + " bytes of room for them"
                                       : std::string();
    world_->release(message);
    if (truncated) {
      throw error(fault::communication, what);
    }
  }

  static std::string describe(std::span<request const> requests) {
    std::string text;
    for (request const& each : requests) {
      if (each.active()) {
        text += text.empty() ? "" : " or ";
        text += each.message_->receive ? "to receive from rank " : "to send to rank ";
        text += std::to_string(each.message_->peer) + " (" + std::string(name(each.message_->use)) + ")";
      }
    }
    return text;
  }

  template <class T>
  static void reduce(detail::in_process_world::rendezvous& meeting, std::size_t count, reduction op, T*) {
    meeting.mismatch = false;
    for (std::size_t const other : meeting.sizes) {
      meeting.mismatch = meeting.mismatch || other != count;
    }
    if (meeting.mismatch) {
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      T result = static_cast<T*>(meeting.data[0])[i];
      for (std::size_t rank = 1; rank < meeting.data.size(); ++rank) {
        T const other = static_cast<T*>(meeting.data[rank])[i];
        switch (op) {
        case reduction::sum: result += other; break;
        case reduction::min: result = other < result ? other : result; break;
        case reduction::max: result = result < other ? other : result; break;
        }
      }
      for (void* const target : meeting.data) {
        static_cast<T*>(target)[i] = result;
      }
    }
  }

  detail::in_process_world* world_;
  int rank_;
};

namespace in_process {

/// How `run` is made to work.
struct options {
  std::size_t stack_bytes = std::size_t(8) << 20; ///< per rank, at least `least_stack_bytes`; committed as it is used
};

/// A smaller stack is refused: messages, an exception and a small kernel fit on this one.
inline constexpr std::size_t least_stack_bytes = std::size_t(64) << 10;

/// Runs `body(in_process_communicator)` on `ranks` ranks and gives what each rank threw (null where it returned).
template <class Body>
std::vector<std::exception_ptr> run_and_collect(int ranks, Body&& body, options const& how = {}) {
  if (ranks < 1) {
    throw error(fault::option_out_of_range, "in_process::run needs at least one rank");
  }
  if (how.stack_bytes < least_stack_bytes) {
    throw error(fault::option_out_of_range, "in_process::run: stack_bytes = " + std::to_string(how.stack_bytes) +
                                                " is less than the least, " + std::to_string(least_stack_bytes));
  }
  detail::in_process_world world(ranks);
  return world.run([&](int rank) { body(in_process_communicator(world, rank)); }, how.stack_bytes);
}

/// Runs `body(in_process_communicator)` on `ranks` ranks; rethrows the first failure that is not merely somebody
/// waiting for a rank that failed.
template <class Body>
void run(int ranks, Body&& body, options const& how = {}) {
  std::exception_ptr first;
  for (std::exception_ptr const& failure : run_and_collect(ranks, std::forward<Body>(body), how)) {
    if (failure == nullptr) {
      continue;
    }
    try {
      std::rethrow_exception(failure);
    } catch (error const& caught) {
      if (caught.code() == fault::deadlock) {
        first = first ? first : failure;
        continue;
      }
    } catch (...) {
    }
    std::rethrow_exception(failure);
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

} // namespace in_process

} // namespace oktopk
