// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks that make their calls in another order, or a call too many: an error on every rank that says who did what.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;

namespace {

using E = host_execution;

struct named {
  std::string text;
  oktopk::gradient_size size;
};

// What each rank hears where the last one calls two objects in the other order.
std::vector<outcome> heard_where_one_turns(named const& of_a, named const& of_b, int ranks = 3) {
  std::vector<outcome> heard(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto a = oktopk::make_allreduce(E(), comm, of_a.text, of_a.size);
    auto b = oktopk::make_allreduce(E(), comm, of_b.text, of_b.size);
    auto const call = [&](auto& allreduce) {
      allreduce(seeded_accumulator<float>(allreduce.length(), comm.rank(), 0));
    };
    call(a); // all alike
    call(b);
    bool const turns = comm.rank() == ranks - 1;
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] {
      call(turns ? b : a);
      call(turns ? a : b);
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

void check_all_name_it(named const& of_a, named const& of_b) {
  CAPTURE(of_a.text, of_b.text);
  for (int const ranks : {2, 3, 8}) {
    for (outcome const& each : heard_where_one_turns(of_a, of_b, ranks)) {
      INFO(ranks << " ranks: " << each.text);
      CHECK((each.code == fault::damaged_message || each.code == fault::abandoned));
      CHECK(
          each.says("another object, algorithm, length or k; the ranks do not make the same calls in the same order"));
    }
  }
}

oktopk::gradient_size const of_300{.length = 300, .k = 30};

} // namespace

TEST_CASE("two objects of different lengths that one rank calls in the other order are an error on every rank") {
  check_all_told(heard_where_one_turns({"ok_topk", of_300}, {"ok_topk", {.length = 400, .k = 30}}));
}

TEST_CASE("two algorithms that one rank calls in the other order are an error on every rank") {
  for (auto const& [one, other] :
       {std::pair("ok_topk", "topk_a"), {"gtopk", "ok_topk"}, {"topk_a", "dense"}, {"ok_topk", "dense"}}) {
    CAPTURE(one, other);
    check_all_told(heard_where_one_turns({one, of_300}, {other, of_300}));
  }
}

TEST_CASE("two objects that are alike in everything are told apart by the order of their making") {
  for (char const* const text : {"ok_topk", "topk_a", "gtopk", "topk_dsa"}) {
    CAPTURE(text);
    auto const heard = heard_where_one_turns({text, of_300}, {text, of_300});
    check_all_told(heard);
    CHECK(std::any_of(heard.begin(), heard.end(), [](outcome const& each) {
      return each.says(
          "another object, algorithm, length or k; the ranks do not make the same calls in the same order");
    }));
  }
}

// Sums of values alone, which would be mixed without an error.
TEST_CASE("two dense objects of one length that a rank calls in the other order are named by every rank") {
  for (char const* const text :
       {"dense", "ring", "ring_chunked", "ring_pipelined", "halving_doubling", "recursive_doubling",
        "dense_rabenseifner", "dense_bfloat16", "ring_chunked(codec=block_float, cutoff_bytes=0)",
        "recursive_doubling(codec=float16, cutoff_bytes=0)"}) {
    check_all_name_it({text, of_300}, {text, of_300});
  }
}

TEST_CASE("two dense schemes, or a dense and a sparse one, that a rank takes for each other are named by every rank") {
  check_all_name_it({"dense", of_300}, {"dense", {.length = 400}});
  check_all_name_it({"dense", of_300}, {"ring", of_300});
  check_all_name_it({"ring", of_300}, {"dense_rabenseifner", of_300});
  check_all_name_it({"dense_bfloat16", of_300}, {"halving_doubling", of_300});
}

TEST_CASE_ON(inner, 4, "dense schemes compare their calls only where there is another of them, within their bound") {
  using counting = oktopk::counted<in_process_communicator>;
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
  auto const tagged = oktopk::make_allreduce(E(), comm, "ok_topk", {.length = 300, .k = 30});
  CHECK(sent_in_a_call(sums) == std::pair(2.0 * 300 * 3 / 4, std::int64_t(4)));
  oktopk::dense<E, counting> others(E(), comm, {.length = 300});
  CHECK(sent_in_a_call(sums) == std::pair(2.0 * 300 * 3 / 4 + 6, std::int64_t(4 + 2)));
  CHECK(sent_in_a_call(others) == std::pair(2.0 * 300 * 3 / 4 + 6, std::int64_t(4 + 2)));
}

TEST_CASE("dense schemes that compare their calls blame the lowest rank with a fault all the same") {
  auto const heard = oktopk::in_process::run_and_collect(3, [](in_process_communicator comm) {
    oktopk::dense_ring<E, in_process_communicator> sums(E(), comm, {.length = 300});
    oktopk::dense_ring<E, in_process_communicator> others(E(), comm, {.length = 300});
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
  auto const heard = oktopk::in_process::run_and_collect(3, [](in_process_communicator comm) {
    oktopk::dense<E, in_process_communicator> sums(E(), comm, {.length = 300});
    oktopk::dense<E, in_process_communicator> const others(E(), comm, {.length = 300});
    auto accumulator = seeded_accumulator<float>(300, comm.rank(), 0);
    if (comm.rank() == 0) {
      accumulator(7) = std::numeric_limits<float>::quiet_NaN();
    }
    if (comm.rank() == 1) {
      sums.fail({fault::length_mismatch, 5});
    }
    sums(accumulator);
  });
  for (std::exception_ptr const& each : heard) {
    CHECK(unlike(outcome_of(each), fault::non_finite, "rank 0: the value at index 7 is not finite") == "");
  }
}

TEST_CASE("objects are counted on their communicator, over its copies and what stands around it") {
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    CHECK(comm.number_object() == 0);
    in_process_communicator copy = comm;
    CHECK(copy.number_object() == 1);
    oktopk::counted around(copy);
    CHECK(around.number_object() == 2);
    auto made = oktopk::make_allreduce(E(), comm, "ok_topk", {.length = 300, .k = 30});
    made.restore(made.state());
    made.set_k(20);
    CHECK(comm.number_object() == 4);
    auto others = comm.survivors();
    CHECK(others.number_object() == 0);
  });
}

TEST_CASE("two objects that are alike but for their calls so far are an error on every rank") {
  std::vector<outcome> heard(2);
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    auto a = oktopk::make_allreduce(E(), comm, "ok_topk", {.length = 300, .k = 30});
    auto b = oktopk::make_allreduce(E(), comm, "ok_topk", {.length = 300, .k = 30});
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
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    auto allreduce = oktopk::make_allreduce(E(), comm, "ok_topk", {.length = 300, .k = 30});
    auto const accumulator = seeded_accumulator<float>(300, comm.rank(), 0);
    allreduce(accumulator);
    if (comm.rank() == 1) {
      heard = outcome_of([&] { allreduce(accumulator); });
    }
  });
  CHECK(heard.code == fault::deadlock);
}
