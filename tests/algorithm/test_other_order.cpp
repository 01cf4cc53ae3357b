// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks that make their calls in another order, or a call too many: an error on every rank that says who did what.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using E = host_execution;
using C = in_process_communicator;

// What each rank hears where the last one calls two objects in the other order.
template <class A, class B>
std::vector<outcome> heard_where_one_turns(typename A::options const& of_a, typename B::options const& of_b) {
  std::vector<outcome> heard(3);
  oktopk::in_process::run(3, [&](C comm) {
    A a(E(), comm, of_a);
    B b(E(), comm, of_b);
    auto const of_length = [&](std::int64_t length) { return seeded_accumulator<float>(length, comm.rank(), 0); };
    a(of_length(of_a.length)); // all alike
    b(of_length(of_b.length));
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] {
      if (comm.rank() == 2) {
        b(of_length(of_b.length));
        a(of_length(of_a.length));
      } else {
        a(of_length(of_a.length));
        b(of_length(of_b.length));
      }
    });
  });
  return heard;
}

// Where the messages do not even meet, nobody can go on, and everybody hears who waits for what.
void check_all_told(std::vector<outcome> const& heard) {
  bool some_found = false;
  for (outcome const& each : heard) {
    INFO(each.text);
    CHECK(each.code != fault::none);
    CHECK(each.code != fault::non_finite); // it would blame the numbers
    some_found = some_found || each.code == fault::damaged_message || each.says("no rank can go on");
  }
  CHECK(some_found);
}

} // namespace

TEST_CASE("two objects of different lengths that one rank calls in the other order are an error on every rank") {
  using ok = oktopk::ok_topk<E, C>;
  check_all_told(heard_where_one_turns<ok, ok>({.length = 300, .k = 30}, {.length = 400, .k = 30}));
}

TEST_CASE("two algorithms that one rank calls in the other order are an error on every rank") {
  using ok = oktopk::ok_topk<E, C>;
  using all = oktopk::topk_a<E, C>;
  using tree = oktopk::gtopk<E, C>;
  check_all_told(heard_where_one_turns<ok, all>({.length = 300, .k = 30}, {.length = 300, .k = 30}));
  check_all_told(heard_where_one_turns<tree, ok>({.length = 300, .k = 30}, {.length = 300, .k = 30}));
}

TEMPLATE_TEST_CASE("two objects that are alike in everything are told apart by the order of their making", "",
                   (oktopk::ok_topk<E, C>), (oktopk::topk_a<E, C>), (oktopk::gtopk<E, C>), (oktopk::topk_dsa<E, C>)) {
  auto const heard = heard_where_one_turns<TestType, TestType>({.length = 300, .k = 30}, {.length = 300, .k = 30});
  check_all_told(heard);
  CHECK(std::any_of(heard.begin(), heard.end(), [](outcome const& each) {
    return each.says("another object, algorithm, length or k; the ranks do not make the same calls in the same order");
  }));
}

TEST_CASE("objects are counted on their communicator, over its copies and what stands around it") {
  using oktopk::detail::number_object;
  oktopk::in_process::run(2, [&](C comm) {
    CHECK(number_object(comm) == 0);
    C copy = comm;
    CHECK(number_object(copy) == 1);
    oktopk::counted around(copy);
    CHECK(number_object(around) == 2);
    oktopk::ok_topk<E, C> made(E(), comm, {.length = 300, .k = 30});
    made.restore(made.state());
    made.set_k(20);
    CHECK(number_object(comm) == 4);
    auto others = comm.survivors();
    CHECK(number_object(others) == 0);
  });
}

TEST_CASE("two objects that are alike but for their calls so far are an error on every rank") {
  using ok = oktopk::ok_topk<E, C>;
  std::vector<outcome> heard(2);
  oktopk::in_process::run(2, [&](C comm) {
    ok a(E(), comm, {.length = 300, .k = 30});
    ok b(E(), comm, {.length = 300, .k = 30});
    auto const accumulator = seeded_accumulator<float>(300, comm.rank(), 0);
    a(accumulator); // the first call finds regions
    b(accumulator);
    a(accumulator);
    heard[static_cast<std::size_t>(comm.rank())] =
        outcome_of([&] { comm.rank() == 0 ? a(accumulator) : b(accumulator); });
  });
  check_all_told(heard);
  CHECK((heard[0].says("ok_topk, call 2") || heard[1].says("ok_topk, call 1")));
  CHECK((heard[0].says("another object, algorithm, length or k") ||
         heard[1].says("another object, algorithm, length or k")));
}

TEST_CASE("a call too many on one rank ends with an error there") {
  outcome heard;
  oktopk::in_process::run(3, [&](C comm) {
    oktopk::ok_topk<E, C> allreduce(E(), comm, {.length = 300, .k = 30});
    auto const accumulator = seeded_accumulator<float>(300, comm.rank(), 0);
    allreduce(accumulator);
    if (comm.rank() == 1) {
      heard = outcome_of([&] { allreduce(accumulator); });
    }
  });
  CHECK(heard.code == fault::deadlock);
}
