// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "report.hpp"
#include "result.hpp"

#include <oktopk/catalogue/any_allreduce.hpp>
#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/time_limit.hpp>
#include <oktopk/core/error.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

namespace oktopk_bench {

/// A communicator that measures how long its rank waits; copies share their clocks.
///
/// Ranks in one process take turns: what one of them calls waiting are the others' turns, and the rest is what the rank
/// itself has done.
template <oktopk::communicator Comm>
class timed : public oktopk::communicator_decorator<Comm> {
  using decorator = oktopk::communicator_decorator<Comm>;

public:
  using decorator::inner;
  using request = typename Comm::request;

  explicit timed(Comm comm) : decorator(std::move(comm)), clocks_(std::make_shared<clocks>()) {}

  void wait_all(std::span<request> requests) {
    for (request& each : requests) {
      if (each.active()) {
        auto const begin = clock::now();
        inner().wait_all(std::span(&each, 1));
        add(each.message_phase(), since(begin));
      }
    }
  }

  template <class T>
  void allreduce(std::span<T> data, oktopk::reduction op, oktopk::phase p) {
    auto const begin = clock::now();
    inner().allreduce(data, op, p);
    clocks_->in_allreduce += since(begin);
  }

  /// Each algorithm is measured as the only one of its communicator.
  std::int64_t* untagged_objects() const { return &clocks_->untagged_objects; }

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
    std::int64_t untagged_objects = 0;
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

/// Counts and times all that goes through `Comm`.
template <oktopk::communicator Comm>
using counting_communicator = oktopk::counted<timed<Comm>>;

/// What every rank saw of one call, brought together: maxima, and the balance of the reduce phase. Collective.
template <oktopk::communicator Comm, class Allreduce>
measurement over_ranks(Comm& comm, Allreduce const& algorithm, counting_communicator<Comm>& counted,
                       bool selects_together, double seconds) {
  oktopk::traffic const total = counted.total();
  oktopk::call_statistics const& figures = algorithm.last_call();
  auto const reduced = static_cast<double>(counted.of_phase(oktopk::phase::reduce).bytes_received);
  timed<Comm> const& clocks = counted.inner();
  std::array<double, 9> most{seconds,
                             figures.select_seconds,
                             total.words_sent(),
                             total.words_received(),
                             static_cast<double>(total.messages_sent),
                             static_cast<double>(figures.local_selected),
                             reduced,
                             seconds - clocks.waited() - clocks.in_allreduce(),
                             figures.select_seconds - (selects_together ? clocks.waited_to_select() : 0)};
  // In one process the rank that comes last to an allreduce does all of its work, without waiting.
  std::array<double, 1> allreduce_work{clocks.in_allreduce()};
  std::array<double, 1> sum{reduced};
  comm.allreduce(std::span<double>(most), oktopk::reduction::max, oktopk::phase::control);
  comm.allreduce(std::span<double>(allreduce_work), oktopk::reduction::min, oktopk::phase::control);
  comm.allreduce(std::span<double>(sum), oktopk::reduction::sum, oktopk::phase::control);
  measurement row;
  row.ranks = comm.size();
  row.k = algorithm.k();
  row.seconds = most[0];
  row.select_seconds = most[1];
  row.own_seconds = most[7] + allreduce_work[0] / comm.size();
  row.own_select_seconds = most[8];
  row.words_sent = most[2];
  row.words_received = most[3];
  row.messages_sent = static_cast<std::int64_t>(most[4]);
  row.local_selected = static_cast<std::int64_t>(most[5]);
  row.global_selected = figures.global_selected;
  row.bound_words = algorithm.bound_words();
  row.reduce_imbalance = sum[0] > 0 ? most[6] * comm.size() / sum[0] : 0;
  row.words_are_a_floor = counted.modelled() > 0;
  std::array<double, 2 * oktopk::phase_count> sent{};
  for (std::size_t use = 0; use < row.by_purpose.size(); ++use) {
    oktopk::traffic const of = counted.of_phase(static_cast<oktopk::phase>(use));
    sent[2 * use] = static_cast<double>(of.messages_sent);
    sent[2 * use + 1] = of.words_sent();
  }
  comm.allreduce(std::span<double>(sent), oktopk::reduction::max, oktopk::phase::control);
  for (std::size_t use = 0; use < row.by_purpose.size(); ++use) {
    row.by_purpose[use] = {sent[2 * use], sent[2 * use + 1]};
  }
  return row;
}

/// One call of an algorithm, timed and counted, and its update. Collective; `comm` is the one that is not counted,
/// `is_yardstick` says that the algorithm is the communicator's own allreduce, `selects_together` that ranks select
/// among the sums, and `which` names the call where it fails.
template <oktopk::communicator Comm, class Allreduce>
measurement measure(Comm& comm, Allreduce& algorithm, counting_communicator<Comm>& counted,
                    accumulator_view const& accumulator, bool is_yardstick, bool selects_together,
                    std::string const& which, typename Allreduce::update_type& update) {
  std::array<double, 1> barrier{};
  comm.allreduce(std::span<double>(barrier), oktopk::reduction::sum, oktopk::phase::control);
  counted.reset();
  counted.inner().reset();
  std::chrono::steady_clock::time_point begin;
  {
    // MPI's own allreduce in a time limit would be another one, and it is what all is compared with. All ranks are
    // here.
    oktopk::time_limit_scope const limit(comm, is_yardstick ? std::chrono::nanoseconds(0) : comm.time_limit());
    begin = std::chrono::steady_clock::now();
    try {
      update = algorithm(accumulator);
      algorithm.execution().fence();
    } catch (oktopk::error const& fault) {
      throw oktopk::error(fault.code(), which + ": " + fault.sentence());
    }
  }
  std::chrono::duration<double> const taken = std::chrono::steady_clock::now() - begin;
  return over_ranks(comm, algorithm, counted, selects_together, taken.count());
}

} // namespace oktopk_bench
