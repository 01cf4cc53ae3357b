// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every order in which ranks can go on and messages can arrive: all of them give the same bits.

#include "support/catch.hpp"
#include "support/messages.hpp"
#include "support/seeded.hpp"
#include "support/simulation.hpp"

#include <oktopk/allreduce.hpp>
#include <oktopk/comm/in_process.hpp>

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
  /// Before each run: whether there is an order left.
  bool begin() {
    if (open_.empty()) {
      return false;
    }
    path_ = std::move(open_.back());
    open_.pop_back();
    at_ = 0;
    cut_ = false;
    return true;
  }

  /// After it: whether it came to its end.
  bool is_complete() const { return !cut_; }

  std::size_t next(std::size_t possible, std::uint64_t state) override {
    if (at_ == path_.size()) {
      if (!known_.insert(state).second) {
        cut_ = true;
        return end;
      }
      for (std::size_t other = 1; other < possible; ++other) {
        open_.push_back(path_);
        open_.back().push_back(static_cast<std::uint8_t>(other));
      }
      path_.push_back(0);
    }
    return path_[at_++];
  }

private:
  std::vector<std::vector<std::uint8_t>> open_{
      std::vector<std::uint8_t>()}; // choices that lead to where none was taken
  std::unordered_set<std::uint64_t> known_;
  std::vector<std::uint8_t> path_;
  std::size_t at_ = 0;
  bool cut_ = false;
};

/// Runs `body(comm)`, which gives what a rank has computed, in every order of events, and gives what came out of the
/// runs that came to their end; where a rank threw rethrows it.
template <class Result, class Body>
std::set<std::vector<Result>> explore(int ranks, bool yields_at_messages, Body const& body) {
  every_order order;
  std::set<std::vector<Result>> seen;
  oktopk::in_process::options how;
  how.stack_bytes = std::size_t(1) << 20;
  how.simulated = oktopk::in_process::simulation{.order = &order, .yields_at_messages = yields_at_messages};
  while (order.begin()) {
    std::vector<Result> results(static_cast<std::size_t>(ranks));
    oktopk::in_process::run_with_deaths(
        ranks, [&](in_process_communicator comm) { results[static_cast<std::size_t>(comm.rank())] = body(comm); }, how);
    if (order.is_complete()) {
      seen.insert(results);
    }
  }
  return seen;
}

template <class Algorithm = oktopk::ok_topk<E, in_process_communicator>>
void explore_ok_topk(int ranks, int calls, bool yields_at_messages) {
  auto const seen = explore<numbers>(ranks, yields_at_messages, [&](in_process_communicator comm) {
    typename Algorithm::options how{.length = 24, .k = 6};
    how.deliver.gather.ratio = 1; // balances
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
  });
  REQUIRE(seen.size() == 1);
  CHECK_FALSE(seen.begin()->front().empty());
  for (numbers const& each : *seen.begin()) {
    CHECK(each == seen.begin()->front());
  }
}

} // namespace

TEST_CASE("every order of two messages that do not depend on each other is seen") {
  auto const seen = explore<int>(3, false, [&](in_process_communicator comm) {
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
  });
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
