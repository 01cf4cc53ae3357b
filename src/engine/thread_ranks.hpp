// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/collectives.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace oktopk::detail {

/// Where the ranks of one process meet, and their messages. Each rank is on a thread of its own.
class thread_meeting {
public:
  struct receive {
    std::span<std::byte> room;
    int peer;
    phase use;
    bool receives = true;
    std::size_t bytes = 0; ///< that arrived
    bool is_complete = false;
  };

  explicit thread_meeting(int ranks)
      : size_(ranks), lines_(index(ranks) * index(ranks) * phase_count), is_gone_(index(ranks)) {}

  /// The meeting of this name, to which each rank comes once; a name is free again when all have come.
  static std::shared_ptr<thread_meeting> join(std::string const& name, int rank, int size) {
    std::scoped_lock const lock(registry_mutex_);
    auto& found = registry_[name];
    if (!found) {
      found = std::make_shared<thread_meeting>(size);
    }
    if (found->size_ != size || found->has_come_[rank]) {
      throw error(fault::ranks_disagree, "a meeting of threads, '" + name + "', of " + std::to_string(found->size_) +
                                             " ranks has another size, or has rank " + std::to_string(rank) +
                                             " already");
    }
    found->has_come_[rank] = true;
    auto const met = found;
    if (static_cast<int>(met->has_come_.size()) == size) {
      registry_.erase(name);
    }
    return met;
  }

  void send(std::span<std::byte const> bytes, int from, int to, phase use) {
    std::scoped_lock const lock(mutex_);
    line& of = at(from, to, use);
    of.mail.emplace_back(bytes.begin(), bytes.end());
    match(of);
  }

  void receive_from(int from, int to, std::shared_ptr<receive> const& room) {
    std::scoped_lock const lock(mutex_);
    line& of = at(from, to, room->use);
    of.rooms.push_back(room);
    match(of);
  }

  enum class wait_end : std::uint8_t { complete, late, left };

  /// Waits until the message is there, the limit has passed (zero: none), or a rank has left.
  wait_end wait(receive const& of, std::chrono::nanoseconds limit) {
    std::unique_lock lock(mutex_);
    auto const is_over = [&] { return of.is_complete || reason_ || is_gone_[index(of.peer)]; };
    if (limit == std::chrono::nanoseconds(0)) {
      changed_.wait(lock, is_over);
    } else {
      changed_.wait_for(lock, limit, is_over);
    }
    return of.is_complete ? wait_end::complete : is_over() ? wait_end::left : wait_end::late;
  }

  bool is_complete(receive const& of) {
    std::scoped_lock const lock(mutex_);
    return of.is_complete;
  }

  /// Nothing is written to the room any more.
  void forget(int to, std::shared_ptr<receive> const& of) {
    std::scoped_lock const lock(mutex_);
    std::erase(at(of->peer, to, of->use).rooms, of);
  }

  /// The first reason counts, and ends all waits.
  void give_up(int rank, std::string const& why) {
    std::scoped_lock const lock(mutex_);
    if (!reason_) {
      reason_.emplace(rank, why);
    }
    changed_.notify_all();
  }

  /// The rank will send no more.
  void go(int rank) {
    std::scoped_lock const lock(mutex_);
    is_gone_[index(rank)] = true;
    changed_.notify_all();
  }

  /// Who has given up, or is gone, and why.
  std::pair<int, std::string> who_left(int peer) {
    std::scoped_lock const lock(mutex_);
    return reason_.value_or(std::pair(peer, std::string("it has left the group")));
  }

private:
  struct line { // between two ranks, of one phase
    std::deque<std::vector<std::byte>> mail;
    std::deque<std::shared_ptr<receive>> rooms;
  };

  static std::size_t index(int number) { return static_cast<std::size_t>(number); }

  line& at(int from, int to, phase use) {
    return lines_[(index(from) * index(size_) + index(to)) * phase_count + static_cast<std::size_t>(use)];
  }

  void match(line& of) {
    while (!of.mail.empty() && !of.rooms.empty()) {
      receive& to = *of.rooms.front();
      to.bytes = of.mail.front().size();
      std::copy_n(of.mail.front().begin(), std::min(to.bytes, to.room.size()), to.room.begin());
      to.is_complete = true;
      of.mail.pop_front();
      of.rooms.pop_front();
    }
    changed_.notify_all();
  }

  inline static std::mutex registry_mutex_;
  inline static std::map<std::string, std::shared_ptr<thread_meeting>> registry_;

  int size_;
  std::map<int, bool> has_come_;
  std::mutex mutex_; // of what follows
  std::condition_variable changed_;
  std::vector<line> lines_;
  std::vector<bool> is_gone_;
  std::optional<std::pair<int, std::string>> reason_;
};

struct thread_rank_state : shared_state {
  thread_rank_state(std::string const& name, int own, int ranks)
      : meeting(thread_meeting::join(name, own, ranks)), rank(own), size(ranks) {}
  thread_rank_state& operator=(thread_rank_state&&) = delete;
  ~thread_rank_state() { meeting->go(rank); }

  std::shared_ptr<thread_meeting> meeting;
  int rank;
  int size;
};

/// Ranks that are threads of one process, for tests and for programs that show something without a network. A send
/// copies its bytes.
class thread_communicator : public limited_communicator<thread_communicator, thread_rank_state> {
public:
  class request : public reported_request {
  public:
    request() = default;
    bool active() const { return message_ != nullptr; }
    std::size_t bytes() const { return bytes_; }

  private:
    friend thread_communicator;
    using reported_request::reported_request;
    std::shared_ptr<thread_meeting::receive> message_;
    std::size_t bytes_ = 0;
  };

  using bulk_request = request;
  static constexpr bool tells_sizes() { return true; }

  /// Not collective: the ranks meet by the name.
  thread_communicator(std::string const& name, int rank, int size)
      : limited_communicator(std::make_shared<thread_rank_state>(name, rank, size)) {}

  bool takes_other_threads() const { return true; }
  std::shared_ptr<thread_meeting> const& meeting() const { return shared_->meeting; }

  void abort(error const& why) noexcept {
    shared_->broken.note(why);
    shared_->meeting->give_up(rank(), why.sentence());
  }

  request isend(std::span<std::byte const> out, int peer, phase use) {
    expect_peer(peer);
    shared_->meeting->send(out, rank(), peer, use);
    return request(false, peer, use);
  }

  request irecv(std::span<std::byte> in, int peer, phase use) {
    expect_peer(peer);
    request made(true, peer, use);
    made.message_ = std::make_shared<thread_meeting::receive>(thread_meeting::receive{in, peer, use});
    shared_->meeting->receive_from(peer, rank(), made.message_);
    return made;
  }

  void wait_all(std::span<request> requests) {
    launch_unlock const lent;
    for (request& each : requests) {
      if (each.active()) {
        wait_for(each, requests);
      }
    }
  }

  void cancel(std::span<request> requests) noexcept {
    abort(order_is_lost(rank()));
    for (request& each : requests) {
      if (each.active()) {
        shared_->meeting->forget(rank(), each.message_);
        each.message_.reset();
      }
    }
  }

  template <class T>
  void allreduce(std::span<T> values, reduction op, phase use) {
    std::vector<T> scratch;
    reduce_in_ring(*this, values, op, use, scratch);
  }

private:
  void expect_peer(int peer) const {
    shared_->broken.throw_if_happened();
    if (peer < 0 || peer >= size()) {
      throw error(fault::communication, "there is no rank " + std::to_string(peer));
    }
  }

  void wait_for(request& each, std::span<request> all) {
    using enum thread_meeting::wait_end;
    auto const end = shared_->meeting->wait(*each.message_, shared_->time_limit);
    if (end == late) {
      error const why = wait_report(all, [&](request const& other) {
                          return !other.active() || shared_->meeting->is_complete(*other.message_);
                        }).timed_out(rank(), shared_->during, shared_->time_limit);
      abort(why);
      throw why;
    }
    if (end == left) {
      auto const [who, why] = shared_->meeting->who_left(each.message_->peer);
      shared_->broken.fail(abandoned_by(who, shared_->during, why));
    }
    each.bytes_ = each.message_->bytes;
    std::size_t const room = each.message_->room.size();
    int const from = each.message_->peer;
    each.message_.reset();
    if (each.bytes_ > room) {
      shared_->broken.fail(exceeds_room(each.bytes_, from, room));
    }
  }
};

} // namespace oktopk::detail
