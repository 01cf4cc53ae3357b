// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every order in which ranks can go on and messages can arrive: all of them give the same bits.

#include "support/catch.hpp"
#include "support/messages.hpp"
#include "support/seeded.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/simulation.hpp>

#include <cstdio>
#include <set>
#include <unordered_set>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

using E = host_execution;
using numbers = std::vector<double>;

/// Leads a simulated world through every order of its events, one run after the other.
///
/// A run repeats the choices that led to a state, takes one that was not taken there, and goes on until it meets a
/// state that is known: how many steps each rank has gone, and which messages have arrived with which bytes. Ranks do
/// the same in the same state, unless they look at what they have not waited for and tell nobody.
class every_order final : public oktopk::in_process::event_order {
public:
  /// Until `from`, in number of events, there is only one order.
  explicit every_order(std::int64_t from = 0) : from_(from) { open_.emplace_back(); }

  bool is_done() const { return open_.empty(); }
  std::int64_t states() const { return static_cast<std::int64_t>(known_.size()); }
  std::int64_t runs() const { return runs_; }
  std::int64_t complete() const { return complete_; }

  /// Before each run.
  void begin() {
    path_ = std::move(open_.back());
    open_.pop_back();
    at_ = 0;
    cut_ = false;
    runs_ += 1;
  }

  /// After it: whether it came to its end.
  bool finish() {
    complete_ += cut_ ? 0 : 1;
    return !cut_;
  }

  std::size_t next(std::size_t possible, std::uint64_t state) override {
    if (at_ < path_.size()) {
      return path_[at_++];
    }
    if (static_cast<std::int64_t>(at_) >= from_) {
      if (!known_.insert(state).second) {
        cut_ = true;
        return end;
      }
      for (std::size_t other = 1; other < possible; ++other) {
        open_.push_back(path_);
        open_.back().push_back(static_cast<std::uint8_t>(other));
      }
    }
    path_.push_back(0);
    at_ += 1;
    return 0;
  }

private:
  std::int64_t from_;
  std::vector<std::vector<std::uint8_t>> open_; // choices that lead to where none was taken
  std::unordered_set<std::uint64_t> known_;
  std::vector<std::uint8_t> path_;
  std::size_t at_ = 0;
  bool cut_ = false;
  std::int64_t runs_ = 0;
  std::int64_t complete_ = 0;
};

/// Runs `body(comm)`, which gives what a rank has computed, in every order of events; calls `see(results)` for each run
/// that came to its end, and where a rank threw rethrows it.
template <class Result, class Body, class See>
void explore(every_order& order, int ranks, bool yields_at_messages, Body const& body, See const& see) {
  oktopk::in_process::options how;
  how.stack_bytes = std::size_t(1) << 20;
  how.simulated = oktopk::in_process::simulation{.order = &order, .yields_at_messages = yields_at_messages};
  while (!order.is_done()) {
    std::vector<Result> results(static_cast<std::size_t>(ranks));
    order.begin();
    oktopk::in_process::run(
        ranks,
        [&](oktopk::in_process_communicator comm) { results[static_cast<std::size_t>(comm.rank())] = body(comm); },
        how);
    if (order.finish()) {
      see(results);
    }
  }
}

template <class Algorithm>
numbers call_it(in_process_communicator& comm, int calls) {
  typename Algorithm::options how{.length = 24, .k = 6};
  how.gather.ratio = 1; // balances
  Algorithm allreduce(E(), comm, how);
  numbers found;
  for (int call = 0; call < calls; ++call) {
    auto const& update = allreduce(seeded_accumulator<float>(24, comm.rank(), call));
    for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
      found.push_back(update.indices()(i));
      found.push_back(static_cast<double>(update.values()(i)));
    }
  }
  return found;
}

template <class Algorithm = oktopk::ok_topk<E, in_process_communicator>>
void explore_ok_topk(int ranks, int calls, bool yields_at_messages) {
  every_order order;
  std::set<std::vector<numbers>> seen;
  explore<numbers>(
      order, ranks, yields_at_messages, [&](in_process_communicator comm) { return call_it<Algorithm>(comm, calls); },
      [&](std::vector<numbers> const& results) { seen.insert(results); });
  CHECK(seen.size() == 1);
  CHECK(order.complete() >= 1);
  CHECK_FALSE(seen.begin()->front().empty());
  for (numbers const& each : *seen.begin()) {
    CHECK(each == seen.begin()->front());
  }
  std::printf("ok_topk, %d ranks, %d calls, %s: %lld states, %lld runs, %lld of them to the end\n", ranks, calls,
              yields_at_messages ? "ranks yield at each message" : "ranks yield where they wait",
              static_cast<long long>(order.states()), static_cast<long long>(order.runs()),
              static_cast<long long>(order.complete()));
}

} // namespace

TEST_CASE("every order of two messages that do not depend on each other is seen") {
  every_order order;
  std::set<std::vector<int>> seen;
  explore<int>(
      order, 3, false,
      [&](in_process_communicator comm) {
        if (comm.rank() > 0) {
          send_number(comm, comm.rank(), 0, oktopk::phase::reduce);
          return 0;
        }
        int first = 0;
        int second = 0;
        in_process_communicator::request both[2] = {comm.irecv(space_in(first), 1, oktopk::phase::reduce),
                                                    comm.irecv(space_in(second), 2, oktopk::phase::reduce)};
        comm.wait_all(std::span(both, 1));
        int const other = second; // what is there of a message that was not waited for depends on the order
        comm.wait_all(both);
        return 10 * first + other;
      },
      [&](std::vector<int> const& results) { seen.insert(results); });
  CHECK(seen == std::set<std::vector<int>>{{10, 0, 0}, {12, 0, 0}});
}

// Each a test of its own, for they take seconds.
TEST_CASE("every order of the events of ok_topk on two ranks gives the same bits") {
  explore_ok_topk(2, 3, true);
  explore_ok_topk<oktopk::paper_ok_topk<E, in_process_communicator>>(2, 3, true);
}

TEST_CASE("every order of the events of ok_topk on three ranks gives the same bits, where they may yield anywhere") {
  explore_ok_topk(3, 1, true);
}

TEST_CASE("every order of the events of two calls of ok_topk on three ranks gives the same bits") {
  explore_ok_topk(3, 2, false);
}

TEST_CASE("every order of the events of two calls of paper_ok_topk on three ranks gives the same bits") {
  explore_ok_topk<oktopk::paper_ok_topk<E, in_process_communicator>>(3, 2, false);
}
