// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every order in which ranks can go on and messages can arrive: all of them give the same bits.

#include "simulate/explore.hpp"
#include "support/catch.hpp"
#include "support/messages.hpp"
#include "support/seeded.hpp"

#include <oktopk/allreduce.hpp>

#include <cstdint>
#include <cstdio>
#include <set>
#include <vector>

using namespace oktopk_tests;
using oktopk::in_process_communicator;
using oktopk_simulate::every_order;
using oktopk_simulate::explore;

namespace {

using E = host_execution;
using numbers = std::vector<double>;

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
        in_process_communicator::request both[2] = {comm.irecv(room_in(first), 1, oktopk::phase::reduce),
                                                    comm.irecv(room_in(second), 2, oktopk::phase::reduce)};
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
