// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/draws.hpp"

#include <oktopk/comm/any_communicator.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/in_process.hpp>

#include <utility>
#include <vector>

namespace oktopk_simulate {

/// What a network costs a rank from one call on.
struct network_phase {
  int from = 0; ///< call
  double latency = 0;
  double seconds_per_byte = 0;
};

/// How fast a rank is, and what its links cost it.
struct rank_speed {
  double step = 0;      ///< seconds that pass between two looks at the clock, at most
  double rate = 1;      ///< of its clock
  double busy = 0;      ///< share of the looks at the clock before which others had the processor
  double busy_time = 0; ///< seconds that they had it, at most
  std::vector<network_phase> network;
};

/// The clock of one rank of a simulated world, which `std::chrono::steady_clock` shows while the rank is at work.
///
/// It shows the virtual time of the world, and beside it what this rank alone has spent: on messages, by their bytes, and
/// on computation. So ranks measure different times for the same call, and the same seed gives the same times.
class rank_clock {
public:
  rank_clock(oktopk::in_process_communicator world, rank_speed speed, std::uint64_t seed)
      : world_(std::move(world)), speed_(std::move(speed)), draw_(seed), own_(draw_.real(0, 1e3)) {}

  double seconds() {
    own_ += draw_.real(0, speed_.step) + (draw_.chance(speed_.busy) ? draw_.real(0, speed_.busy_time) : 0);
    return speed_.rate * std::chrono::duration<double>(world_.elapsed()).count() + own_;
  }

  void send(std::size_t bytes) { own_ += now_.latency + static_cast<double>(bytes) * now_.seconds_per_byte; }

  void begin_call(int call) {
    for (network_phase const& each : speed_.network) {
      now_ = each.from <= call ? each : now_;
    }
  }

  /// The rank that is at work; null outside of simulated worlds, where the machine's own clock is shown.
  static inline rank_clock* at_work = nullptr;

private:
  oktopk::in_process_communicator world_;
  rank_speed speed_;
  oktopk_fuzz::draws draw_;
  network_phase now_;
  double own_;
};

/// A communicator that keeps a rank's clock: others may have been at work meanwhile wherever a function returns.
class clocked : public oktopk::communicator_decorator<oktopk::any_communicator> {
  using decorator = oktopk::communicator_decorator<oktopk::any_communicator>;

  struct back_at_work {
    explicit back_at_work(rank_clock* clock) : clock_(clock) {}
    back_at_work& operator=(back_at_work&&) = delete;
    ~back_at_work() { rank_clock::at_work = clock_; }
    rank_clock* clock_;
  };

public:
  clocked(oktopk::any_communicator inner, rank_clock& clock) : decorator(std::move(inner)), clock_(&clock) {
    rank_clock::at_work = clock_;
  }

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    back_at_work const later(clock_);
    clock_->send(out.size());
    return decorator::isend(out, peer, use);
  }

  request irecv(std::span<std::byte> in, int peer, oktopk::phase use) {
    back_at_work const later(clock_);
    return decorator::irecv(in, peer, use);
  }

  template <oktopk::execution_space E>
  void start(E const& exec, std::span<oktopk::bulk_message const> messages, std::span<bulk_request> requests) {
    back_at_work const later(clock_);
    for (oktopk::bulk_message const& each : messages) {
      clock_->send(each.receives ? 0 : each.bytes.size());
    }
    decorator::start(exec, messages, requests);
  }

  void wait_all(std::span<request> requests) {
    back_at_work const later(clock_);
    decorator::wait_all(requests);
  }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase use) {
    back_at_work const later(clock_);
    clock_->send(2 * data.size_bytes());
    decorator::allreduce(data, op, use);
  }

private:
  rank_clock* clock_;
};

} // namespace oktopk_simulate
