// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

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

/// A communicator that counts what passes through it, per phase; copies share their counters.
///
/// Messages are counted as they are handed over and as they arrive. The inner communicator's own `allreduce` hides its
/// messages, so it is counted by the least that any algorithm can do: 2n(P-1)/P words each way in 2 ceil(log2 P)
/// messages (Chan et al. 2007; Table 1 of the paper) — a floor, which favours the dense yardstick. `modelled()` tells
/// how many of the bytes sent are of that kind.
template <communicator Comm>
class counted {
public:
  using request = typename Comm::request;

  explicit counted(Comm inner) : inner_(std::move(inner)), counters_(std::make_shared<counters>()) {}

  int rank() const { return inner_.rank(); }
  int size() const { return inner_.size(); }

  request isend(std::span<std::byte const> out, int peer, phase p) {
    traffic& t = of(p);
    t.messages_sent += 1;
    t.bytes_sent += static_cast<std::int64_t>(out.size());
    return inner_.isend(out, peer, p);
  }

  request irecv(std::span<std::byte> in, int peer, phase p) { return inner_.irecv(in, peer, p); }

  std::size_t wait_any(std::span<request> requests) {
    std::size_t const which = inner_.wait_any(requests);
    if (which < requests.size()) {
      arrived(requests[which]);
    }
    return which;
  }

  void wait_all(std::span<request> requests) {
    // Waiting makes requests inactive, so which of them are to be counted is only known one at a time.
    for (std::size_t left = requests.size(); left > 0; --left) {
      if (wait_any(requests) == requests.size()) {
        return;
      }
    }
  }

  /// What was sent stays counted.
  void cancel(std::span<request> requests) noexcept { inner_.cancel(requests); }

  template <class T>
  void allreduce(std::span<T> data, reduction op, phase p) {
    inner_.allreduce(data, op, p);
    if (size() > 1) {
      auto const bytes = static_cast<std::int64_t>(2 * data.size_bytes()) / size() * (size() - 1);
      std::int64_t messages = 0;
      for (int reach = 1; reach < size(); reach *= 2) {
        messages += 2;
      }
      of(p) += {messages, messages, bytes, bytes};
      counters_->modelled += bytes;
    }
  }

  template <class MemorySpace>
  bool reaches() const {
    return inner_.template reaches<MemorySpace>();
  }

  traffic const& of_phase(phase p) const { return counters_->phases[static_cast<std::size_t>(p)]; }

  traffic total() const {
    traffic sum;
    for (traffic const& t : counters_->phases) {
      sum += t;
    }
    return sum;
  }

  /// Bytes sent that are a floor for the inner communicator's own allreduce rather than counted messages.
  std::int64_t modelled() const { return counters_->modelled; }

  void reset() { *counters_ = counters{}; }

  Comm& inner() { return inner_; }

private:
  struct counters {
    std::array<traffic, phase_count> phases{};
    std::int64_t modelled = 0;
  };

  traffic& of(phase p) { return counters_->phases[static_cast<std::size_t>(p)]; }

  void arrived(request const& r) {
    if (r.receives()) {
      traffic& t = of(r.message_phase());
      t.messages_received += 1;
      t.bytes_received += static_cast<std::int64_t>(r.bytes());
    }
  }

  Comm inner_;
  std::shared_ptr<counters> counters_;
};

} // namespace oktopk
