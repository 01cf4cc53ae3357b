// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/time_limit.hpp>

#include <exception>
#include <memory>
#include <tuple>
#include <utility>

/// The end of messages when a rank leaves, and the error sentences of a communicator whose ranks can no longer meet.
namespace oktopk::detail {

/// Ends the messages of a collective that is left by an exception, so that none arrives in memory that no longer
/// exists.
///
/// To be made before the first message, and after the memory of all of them:
/// `cancel_on_unwind const guard(comm, sends_, receives_);`. It names the requests: single ones, and arrays or vectors
/// that may still grow. They must outlive it. If an exception leaves the scope, the active requests are cancelled, and
/// this rank cannot use the communicator any more (see `communicator`). So the scope must not throw an error that all
/// ranks throw alike and after which they continue. Costs nothing else.
template <class Comm, class... Requests>
class cancel_on_unwind {
public:
  explicit cancel_on_unwind(Comm& comm, Requests&... requests)
      : comm_(comm), requests_(requests...), exceptions_(std::uncaught_exceptions()) {}

  cancel_on_unwind& operator=(cancel_on_unwind&&) = delete;

  ~cancel_on_unwind() {
    if (std::uncaught_exceptions() > exceptions_) {
      comm_.cancel(std::span<request>()); // also where none is under way: the other ranks still expect some
      std::apply([this](auto&... each) { (this->cancel_each(each), ...); }, requests_);
    }
  }

private:
  using request = typename Comm::request;

  template <class R>
  void cancel_each(R& requests) noexcept {
    if constexpr (message_request<R>) {
      comm_.cancel(std::span<R>(&requests, 1));
    } else {
      comm_.cancel(std::span<typename R::value_type>(requests));
    }
  }

  Comm& comm_;
  std::tuple<Requests&...> requests_;
  int exceptions_;
};

/// The operation that the ranks of a communicator do together, for the sentences of errors.
struct operation {
  std::string name{};       ///< of an algorithm, or of the object that ranks make; empty before the first
  std::int64_t number = -1; ///< of the call, from 0 on; negative if it has no meaning

  /// Allocates nothing if an earlier name was as long.
  void begin(std::string_view what, std::int64_t which) {
    name.assign(what);
    number = which;
  }

  /// "ok_topk, call 12"
  std::string text() const { return name + (number < 0 ? std::string() : ", call " + std::to_string(number)); }

  /// " in ok_topk, call 12"; empty before the first
  std::string where() const { return name.empty() ? std::string() : " in " + text(); }
};

/// The reason why this rank cannot use a communicator any more; the first reason is kept.
///
/// Part of a communicator, shared by its copies. Not for several threads at once.
class revocation {
public:
  explicit operator bool() const { return code_ != fault::none; }
  fault code() const { return code_; }
  std::string const& reason() const { return reason_; }

  /// Keeps a reason unless there is one. If memory for the sentence is missing, only the fault is kept.
  void note(error const& why) noexcept {
    if (code_ == fault::none) {
      code_ = why.code();
      try {
        reason_ = why.sentence();
      } catch (std::exception const&) {
        reason_.clear();
      }
    }
  }

  [[noreturn]] void fail(error const& why) {
    note(why);
    throw why;
  }

  /// Called by each call that would start a message.
  void throw_if_happened() const {
    if (*this) {
      throw error(code_, "the communicator cannot be used any more: " + reason_);
    }
  }

private:
  fault code_ = fault::none;
  std::string reason_;
};

/// State that the copies of a communicator on one rank share.
struct shared_state {
  std::chrono::nanoseconds time_limit = usual_time_limit; ///< zero stands for none
  operation during;
  revocation broken;
  std::int64_t objects = 0;          ///< made on the communicator so far, the same on all ranks
  std::int64_t untagged_objects = 0; ///< of these, those whose messages have no tags

  bool has_limit() const { return time_limit > std::chrono::nanoseconds(0); }
};

/// Base of a communicator whose waits have a time limit: all copies share it, and it is the same on all ranks. Bulk
/// messages are started one by one and lie in host memory, unless `Communicator` hides these members.
template <class Communicator, class State, class Pointer = std::shared_ptr<State>>
class limited_communicator : public communicator_base {
public:
  void set_time_limit(std::chrono::nanoseconds limit) { shared_->time_limit = checked_time_limit(limit); }
  std::chrono::nanoseconds time_limit() const { return shared_->time_limit; }
  time_limit_pair time_limits() const { return {time_limit(), time_limit()}; }
  void set_time_limits(time_limit_pair const& both) { set_time_limit(both.second); }
  void begin_operation(std::string_view name, std::int64_t number) { shared_->during.begin(name, number); }
  std::int64_t number_object() { return shared_->objects++; }
  std::int64_t* untagged_objects() const { return &shared_->untagged_objects; }

  int rank() const { return shared_->rank; }
  int size() const { return shared_->size; }

  template <execution_space E, class C = Communicator>
  void start(E const&, std::span<bulk_message const> messages, std::span<typename C::bulk_request> requests) {
    start_one_by_one(static_cast<C&>(*this), messages, requests);
  }

  template <class MemorySpace>
  bool can_access() const {
    return Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;
  }

protected:
  explicit limited_communicator(Pointer shared) : shared_(std::move(shared)) {}

  Pointer shared_;
};

class wait_report;

/// Base of a request: the data of its message for the report of a wait.
class reported_request {
public:
  bool receives() const { return receives_; }
  phase message_phase() const { return use_; }

protected:
  friend wait_report;
  reported_request() = default;
  reported_request(bool receives, int peer, phase use) : peer_(peer), receives_(receives), use_(use) {}

  int peer_ = -1; // none yet
  bool receives_ = false;
  phase use_ = phase::control;
};

/// A request of a transport that stores the message itself until it is over; `Pointer` points to it.
template <class Communicator, class Pointer>
class held_request : public reported_request {
public:
  held_request() = default;
  bool active() const { return message_ != nullptr; }
  std::size_t bytes() const { return bytes_; }

private:
  friend Communicator;
  explicit held_request(Pointer message)
      : reported_request(message->receives, message->peer, message->use), message_(std::move(message)) {}

  // A message that is over is in no later report.
  Pointer take() noexcept {
    peer_ = -1;
    return std::exchange(message_, nullptr);
  }

  Pointer message_ = nullptr;
  std::size_t bytes_ = 0;
};

/// The messages of a wait, complete or not, for the error of a wait that fails.
class wait_report {
public:
  /// `what`: the aim of a wait that waits for no messages: "for everybody in an allreduce".
  explicit wait_report(std::string const& what = {}) : open_(what) {}

  /// Lists the messages of all requests that were ever started; `is_complete(request)` is true for the complete ones.
  template <class Request, class Complete>
  wait_report(std::span<Request> requests, Complete const& is_complete) {
    for (Request& each : requests) {
      if (each.peer_ >= 0) {
        add(is_complete(each), each.receives_, each.peer_, each.use_);
      }
    }
  }

  void add(bool complete, bool receives, int peer, phase use) {
    std::string& text = complete ? complete_ : open_;
    text += text.empty() ? "" : complete ? ", " : " and ";
    text += complete ? (receives ? "from rank " : "to rank ") : receives ? "to receive from rank " : "to send to rank ";
    text += std::to_string(peer) + " (" + std::string(name(use)) + ")";
  }

  /// "to receive from rank 1 (gather) and to send to rank 2 (gather)"
  std::string const& open() const { return open_; }

  /// The error of a rank that has waited longer than the limit; all may be complete by now.
  [[gnu::cold]] error timed_out(int rank, operation const& during, std::chrono::nanoseconds limit) const {
    std::string const what = open_.empty() ? "" : " " + open_;
    return {fault::timed_out, "rank " + std::to_string(rank) + " has waited" + what + during.where() +
                                  " for more than " + detail::duration_text(limit) +
                                  ", the time limit; complete: " + (complete_.empty() ? "nothing" : complete_)};
  }

private:
  std::string open_;
  std::string complete_;
};

/// The error of a rank that has heard that another one, `rank`, has given up.
[[gnu::cold]] inline error abandoned_by(int rank, operation const& during, std::string const& reason) {
  return {fault::abandoned, "rank " + std::to_string(rank) + " has given up" +
                                (during.name.empty() ? "" : " (this rank was" + during.where() + ")") + ": " + reason};
}

/// The error of a message that exceeds the room of its receive.
template <class Size>
[[gnu::cold]] error exceeds_room(Size bytes, int from, std::size_t room) {
  return {fault::communication, std::to_string(bytes) + " bytes from rank " + std::to_string(from) + " exceed the " +
                                    std::to_string(room) + " bytes of room for them"};
}

/// The error of a communicator that has been told to cancel a message.
inline error order_is_lost(int rank) {
  return {fault::communication,
          "rank " + std::to_string(rank) +
              " left a collective by an exception. Its messages no longer match those of the other ranks, so this "
              "communicator cannot be used any more"};
}

} // namespace oktopk::detail
