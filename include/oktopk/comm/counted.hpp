// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/decorator.hpp>
#include <oktopk/core/integers.hpp>

#include <array>
#include <memory>
#include <utility>
#include <vector>

namespace oktopk {

/// Messages and bytes of one phase, as one rank saw them.
struct traffic {
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;

  traffic& operator+=(traffic const& other) {
    messages_sent += other.messages_sent;
    messages_received += other.messages_received;
    bytes_sent += other.bytes_sent;
    bytes_received += other.bytes_received;
    return *this;
  }

  /// Words of 4 bytes on the wire, as the paper counts.
  double words_sent() const { return static_cast<double>(bytes_sent) / 4; }
  double words_received() const { return static_cast<double>(bytes_received) / 4; }
};

/// A communicator that counts its messages and bytes, per phase; copies share their counters.
///
/// A message counts as sent when it is handed over, and as received when it has arrived. The inner communicator's own
/// `allreduce` hides its messages, so it is counted as the least that any algorithm needs: 2n(P-1)/P words each way in
/// 2 ceil(log2 P) messages (Chan et al. 2007; Table 1 of the paper). This lower bound favours the dense allreduce.
/// `modelled()` tells how many of the sent bytes are counted in this way.
template <communicator Comm>
class counted : public communicator_decorator<Comm> {
  using decorator = communicator_decorator<Comm>;

public:
  using decorator::inner;

  /// A message of the inner communicator, and the data to count it when it has arrived.
  template <class Inner>
  class counted_request {
  public:
    bool active() const { return inner_.active(); }
    phase message_phase() const { return use_; }

    std::size_t bytes() const { return inner_.bytes(); }

    counted_request() = default;

  private:
    friend counted;
    counted_request(Inner inner, std::size_t capacity, phase use, bool receives)
        : inner_(std::move(inner)), capacity_(capacity), use_(use), receives_(receives) {}

    Inner inner_{};
    std::size_t capacity_ = 0;
    phase use_ = phase::control;
    bool receives_ = false; // true for a receive that is not counted yet
  };

  using request = counted_request<typename Comm::request>;
  using bulk_request = counted_request<typename Comm::bulk_request>;
  using decorator::size;

  explicit counted(Comm comm) : decorator(std::move(comm)), counters_(std::make_shared<counters>()) {}

  /// The survivors; their messages are counted together with those of this communicator.
  auto survivors()
    requires requires(Comm& comm) { comm.survivors(); }
  {
    counted next(inner().survivors());
    next.counters_ = counters_;
    return next;
  }

  request isend(std::span<std::byte const> out, int peer, phase p) {
    note_sent(out.size(), p);
    return request(inner().isend(out, peer, p), out.size(), p, false);
  }

  request irecv(std::span<std::byte> in, int peer, phase p) {
    return request(inner().irecv(in, peer, p), in.size(), p, true);
  }

  template <execution_space E>
  void start(E const& exec, std::span<bulk_message const> messages, std::span<bulk_request> requests) {
    auto& started = counters_->started;
    started.clear();
    started.resize(messages.size());
    try {
      inner().start(exec, messages, std::span(started));
    } catch (...) { // the caller has no request yet of the messages that have started
      inner().cancel(std::span(started));
      throw;
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      bulk_message const& each = messages[i];
      if (!each.receives) {
        note_sent(each.bytes.size(), each.use);
      }
      requests[i] = bulk_request(std::move(started[i]), each.bytes.size(), each.use, each.receives);
    }
  }

  void wait_all(std::span<request> requests) { wait_for(requests, counters_->control); }

  void wait_all(std::span<bulk_request> requests)
    requires(!std::same_as<request, bulk_request>)
  {
    wait_for(requests, counters_->bulk);
  }

  /// Messages that were sent stay counted.
  void cancel(std::span<request> requests) noexcept { cancel_each(requests); }

  void cancel(std::span<bulk_request> requests) noexcept
    requires(!std::same_as<request, bulk_request>)
  {
    cancel_each(requests);
  }

  template <class T>
  void allreduce(std::span<T> data, reduction op, phase p) {
    inner().allreduce(data, op, p);
    if (size() > 1) {
      auto const bytes = static_cast<std::int64_t>(2 * data.size_bytes()) / size() * (size() - 1);
      std::int64_t const messages = 2 * detail::ceil_log2(size());
      of(p) += {messages, messages, bytes, bytes};
      counters_->modelled += bytes;
    }
  }

  traffic const& of_phase(phase p) const { return counters_->phases[static_cast<std::size_t>(p)]; }

  traffic total() const {
    traffic sum;
    for (traffic const& t : counters_->phases) {
      sum += t;
    }
    return sum;
  }

  /// Sent bytes that are a lower bound for the inner communicator's own allreduce, not counted messages.
  std::int64_t modelled() const { return counters_->modelled; }

  void reset() {
    counters_->phases = {};
    counters_->modelled = 0;
  }

private:
  struct counters {
    std::array<traffic, phase_count> phases{};
    std::int64_t modelled = 0;
    std::vector<typename Comm::bulk_request> started; // scratch of `start`
    std::vector<typename Comm::request> control;      // scratch of waits
    std::vector<typename Comm::bulk_request> bulk;
  };

  void note_sent(std::size_t bytes, phase use) {
    traffic& t = of(use);
    t.messages_sent += 1;
    t.bytes_sent += static_cast<std::int64_t>(bytes);
  }

  template <class Request, class Inner>
  void wait_for(std::span<Request> requests, std::vector<Inner>& scratch) {
    scratch.clear();
    for (Request& each : requests) {
      each.receives_ = each.receives_ && each.active();
    }
    {
      detail::lent_requests<Request, Inner> const lent(requests, &Request::inner_, scratch);
      inner().wait_all(std::span(scratch));
    }
    for (Request& each : requests) {
      if (std::exchange(each.receives_, false)) {
        traffic& t = of(each.use_);
        t.messages_received += 1;
        t.bytes_received += static_cast<std::int64_t>(detail::arrived_bytes(inner(), each.inner_, each.capacity_));
      }
    }
  }

  template <class Request>
  void cancel_each(std::span<Request> requests) noexcept {
    inner().cancel(std::span<typename Comm::request>()); // also where none is under way
    for (Request& each : requests) {
      inner().cancel(std::span(&each.inner_, 1));
    }
  }

  traffic& of(phase p) { return counters_->phases[static_cast<std::size_t>(p)]; }

  std::shared_ptr<counters> counters_;
};

} // namespace oktopk
