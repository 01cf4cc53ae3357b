// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/decorator.hpp>

#include <chrono>
#include <memory>
#include <span>
#include <utility>

namespace oktopk_bench {

/// A communicator that measures how long its rank waits; copies share their clocks.
///
/// Ranks in one process take turns: what one of them calls waiting are the others' turns, and the rest is what the rank
/// itself has done.
template <oktopk::communicator Comm>
class timed : public oktopk::communicator_decorator<Comm> {
  using decorator = oktopk::communicator_decorator<Comm>;
  using decorator::inner_;

public:
  using request = typename Comm::request;

  explicit timed(Comm inner) : decorator(std::move(inner)), clocks_(std::make_shared<clocks>()) {}

  void wait_all(std::span<request> requests) {
    for (request& each : requests) {
      if (each.active()) {
        auto const begin = clock::now();
        inner_.wait_all(std::span(&each, 1));
        add(each.message_phase(), since(begin));
      }
    }
  }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase p) {
    auto const begin = clock::now();
    inner_.allreduce(data, op, p);
    clocks_->in_allreduce += since(begin);
  }

  /// Seconds spent waiting for messages.
  double waited() const { return clocks_->waited; }

  /// Those of them that a selection among the sums took: for thresholds, and for the counts that the ranks share once
  /// the sums are there.
  double waited_to_select() const { return clocks_->for_thresholds + clocks_->for_counts; }

  /// Seconds in the inner communicator's own allreduce, whose waiting cannot be told from its work.
  double in_allreduce() const { return clocks_->in_allreduce; }

  void reset() { *clocks_ = clocks{}; }

private:
  using clock = std::chrono::steady_clock;

  struct clocks {
    double waited = 0;
    double for_thresholds = 0;
    double for_counts = 0;
    double in_allreduce = 0;
  };

  void add(oktopk::phase p, double seconds) {
    clocks_->waited += seconds;
    switch (p) {
    case oktopk::phase::threshold: clocks_->for_thresholds += seconds; break;
    case oktopk::phase::control: clocks_->for_counts += seconds; break;
    case oktopk::phase::reduce: clocks_->for_counts = 0; break; // what came before it were sizes
    default: break;
    }
  }

  static double since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

  std::shared_ptr<clocks> clocks_;
};

} // namespace oktopk_bench
