// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks that make their calls in another order, or a call too many: an error on every rank that says who did what.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/random_mask.hpp>
#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/dense/swing.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using E = host_execution;
using C = in_process_communicator;

// What each rank hears where the last one calls two objects in the other order.
template <class A, class B>
std::vector<outcome> heard_where_one_turns(typename A::options const& of_a, typename B::options const& of_b,
                                           int ranks = 3) {
  std::vector<outcome> heard(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](C comm) {
    A a(E(), comm, of_a);
    B b(E(), comm, of_b);
    auto const of_length = [&](std::int64_t length) { return seeded_accumulator<float>(length, comm.rank(), 0); };
    a(of_length(of_a.length)); // all alike
    b(of_length(of_b.length));
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] {
      if (comm.rank() == ranks - 1) {
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

template <class A, class B = A>
void check_all_name_it(typename A::options const& of_a, typename B::options const& of_b) {
  for (int const ranks : {2, 3, 8}) {
    for (outcome const& each : heard_where_one_turns<A, B>(of_a, of_b, ranks)) {
      INFO(ranks << " ranks: " << each.text);
      CHECK((each.code == fault::damaged_message || each.code == fault::abandoned));
      CHECK(
          each.says("another object, algorithm, length or k; the ranks do not make the same calls in the same order"));
    }
  }
}

template <class Codec>
using coded_ring = oktopk::dense_ring_chunked<E, C, float, std::int32_t, oktopk::coded_wire<Codec, 0>>;
template <class Codec>
using coded_doubling = oktopk::dense_recursive_doubling<E, C, float, std::int32_t, oktopk::coded_wire<Codec, 0>>;
using dense_swing = oktopk::dense<E, C, float, std::int32_t, oktopk::swing<E, C, float>>;

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

// Sums of values alone, which would be mixed without an error.
TEMPLATE_TEST_CASE("two dense objects of one length that a rank calls in the other order are named by every rank", "",
                   (oktopk::dense<E, C>), (oktopk::dense_ring<E, C>), (oktopk::dense_ring_chunked<E, C>),
                   (oktopk::dense_ring_pipelined<E, C>), (oktopk::dense_halving_doubling<E, C>),
                   (oktopk::dense_recursive_doubling<E, C>), (oktopk::dense_rabenseifner<E, C>), dense_swing,
                   (oktopk::dense_bfloat16<E, C>), coded_ring<oktopk::block_float>, coded_doubling<oktopk::float16>) {
  check_all_name_it<TestType>({.length = 300}, {.length = 300});
}

TEST_CASE("two random masks of one length that a rank calls in the other order are named by every rank") {
  using mask = oktopk::random_mask<E, C>;
  check_all_name_it<mask>({.length = 300, .k = 30}, {.length = 300, .k = 30});
  check_all_name_it<mask>({.length = 300, .k = 30}, {.length = 300, .k = 40});
}

TEST_CASE("two dense schemes, or a dense and a sparse one, that a rank takes for each other are named by every rank") {
  using oktopk::dense;
  using oktopk::dense_ring;
  check_all_name_it<dense<E, C>, dense<E, C>>({.length = 300}, {.length = 400});
  check_all_name_it<dense<E, C>, dense_ring<E, C>>({.length = 300}, {.length = 300});
  check_all_name_it<dense_ring<E, C>, oktopk::dense_rabenseifner<E, C>>({.length = 300}, {.length = 300});
  check_all_name_it<oktopk::dense_bfloat16<E, C>, dense_swing>({.length = 300}, {.length = 300});
  check_all_name_it<oktopk::random_mask<E, C>, dense<E, C>>({.length = 300, .k = 300}, {.length = 300});
  check_all_told(heard_where_one_turns<oktopk::topk_a<E, C>, dense<E, C>>({.length = 300, .k = 30}, {.length = 300}));
  check_all_told(heard_where_one_turns<oktopk::ok_topk<E, C>, dense<E, C>>({.length = 300, .k = 30}, {.length = 300}));
}

TEST_CASE_ON(inner, 4, "dense schemes compare their calls only where there is another of them, within their bound") {
  using counting = oktopk::counted<C>;
  counting comm(inner);
  auto const accumulator = seeded_accumulator<float>(300, comm.rank(), 0);
  auto const sent_in_a_call = [&](auto& allreduce) {
    oktopk::traffic const before = comm.total();
    allreduce(accumulator);
    double const words = comm.total().words_sent() - before.words_sent();
    CHECK(words <= allreduce.bound_words());
    return std::pair(words, comm.total().messages_sent - before.messages_sent);
  };
  oktopk::dense_rabenseifner<E, counting> sums(E(), comm, {.length = 300});
  oktopk::ok_topk<E, counting> tagged(E(), comm, {.length = 300, .k = 30});
  CHECK(sent_in_a_call(sums) == std::pair(2.0 * 300 * 3 / 4, std::int64_t(4)));
  oktopk::random_mask<E, counting> mask(E(), comm, {.length = 300, .k = 100});
  CHECK(sent_in_a_call(sums) == std::pair(2.0 * 300 * 3 / 4 + 6, std::int64_t(4 + 2)));
  CHECK(sent_in_a_call(mask) == std::pair(2.0 * 100 * 3 / 4 + 6, std::int64_t(4 + 2)));
}

TEST_CASE("dense schemes that compare their calls blame the lowest rank with a fault all the same") {
  auto const heard = oktopk::in_process::run_and_collect(3, [](C comm) {
    oktopk::dense_ring<E, C> sums(E(), comm, {.length = 300});
    oktopk::dense_ring<E, C> others(E(), comm, {.length = 300});
    auto accumulator = seeded_accumulator<float>(comm.rank() == 1 ? 200 : 300, comm.rank(), 0);
    if (comm.rank() == 0) {
      accumulator(7) = std::numeric_limits<float>::quiet_NaN();
    }
    sums(accumulator);
  });
  for (std::exception_ptr const& each : heard) {
    CHECK(unlike(outcome_of(each), fault::non_finite, "rank 0: the value at index 7 is not finite") == "");
  }
}

TEST_CASE("a fault that a rank brings into such a call does not hide that of a lower rank") {
  auto const heard = [](auto const& called) {
    return oktopk::in_process::run_and_collect(3, [&](C comm) {
      auto accumulator = seeded_accumulator<float>(300, comm.rank(), 0);
      if (comm.rank() == 0) {
        accumulator(7) = std::numeric_limits<float>::quiet_NaN();
      }
      called(comm, [&](auto& allreduce) {
        if (comm.rank() == 1) {
          allreduce.fail({fault::length_mismatch, 5});
        }
        allreduce(accumulator);
      });
    });
  };
  for (auto const &all : {heard([](C comm, auto const& call) {
                            oktopk::dense<E, C> sums(E(), comm, {.length = 300});
                            oktopk::dense<E, C> const others(E(), comm, {.length = 300});
                            call(sums);
                          }),
                          heard([](C comm, auto const& call) {
                            oktopk::random_mask<E, C> sums(E(), comm, {.length = 300, .k = 300});
                            oktopk::random_mask<E, C> const others(E(), comm, {.length = 300, .k = 300});
                            call(sums);
                          })}) {
    for (std::exception_ptr const& each : all) {
      CHECK(unlike(outcome_of(each), fault::non_finite, "rank 0: the value at index 7 is not finite") == "");
    }
  }
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
