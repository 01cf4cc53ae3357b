// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef OKTOPK_TESTS_WITH_XXHASH

#include "comm/suite.hpp"
#include "comm/testing.hpp"
#include "support/seeded.hpp"

#include <oktopk/catalogue/catalogue.hpp>
#include <oktopk/comm/checked.hpp>
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;
using oktopk::checked;
using oktopk::detail::operation;

TEST_CASE("a checked communicator keeps every promise of a communicator") {
  for (int const ranks : {1, 2, 3, 5}) {
    check_communicator([ranks](auto const& body) {
      oktopk::in_process::run(ranks, [&](in_process_communicator comm) { body(checked(comm)); });
    });
  }
  check_communicator([](auto const& body) { body(checked(oktopk::self_communicator())); });
  check_communicator([](auto const& body) {
    oktopk::in_process::run(4, [&](in_process_communicator comm) { body(checked(oktopk::counted(comm))); });
  });
}

// That damage is found and wrong sums are not, tests/simulate sees of every algorithm, with --damage --checked.
TEST_CASE("ranks in two operations hear which ones, both by name") {
  auto const heard = outcomes_of(2, [](in_process_communicator inner) {
    checked comm(inner);
    comm.begin_operation(comm.rank() == 0 ? "one scheme" : "another one", comm.rank());
    pass_around(comm, comm.rank());
  });
  CHECK((heard[0].says("rank 0, message from rank 1 (control): it was sent in another one, call 1 and is received in "
                       "one scheme, call 0") ||
         heard[1].says("rank 1, message from rank 0 (control): it was sent in one scheme, call 0 and is received in "
                       "another one, call 1")));
  CHECK((heard[0].code != fault::none && heard[1].code != fault::none));
}

TEST_CASE_ON(inner, 4, "a steady call of a checked communicator takes as many messages again") {
  oktopk::counted plain(inner);
  checked sealed{oktopk::counted(inner)};
  auto const calls = [&](auto comm, auto const& count) {
    auto allreduce = oktopk::make_allreduce(host_execution(), comm, "ok_topk", {.length = 1000, .k = 50});
    auto const before = count();
    allreduce(seeded_accumulator<float>(1000, comm.rank(), 0));
    return count() - before;
  };
  auto const messages = calls(plain, [&] { return plain.total().messages_sent; });
  CHECK(calls(sealed, [&] { return sealed.inner().total().messages_sent; }) == 2 * messages);
}

using trailer = oktopk::detail::checksum_trailer;

namespace {

operation const during{"ok_topk", 12};

std::vector<std::byte> message(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    made[i] = static_cast<std::byte>(37 * i + 11);
  }
  return made;
}

void check_says(trailer const& sent, trailer const& due, std::string const& part) {
  std::string const text = sent.difference(due);
  INFO(text);
  REQUIRE(text.find(part) != std::string::npos);
}

} // namespace

TEST_CASE("the seal of the message that is due finds no difference") {
  CHECK(sizeof(trailer) == 64);
  for (std::size_t const bytes : {0U, 1U, 63U, 4096U}) {
    CHECK(trailer::of(message(bytes), 5, phase::reduce, during)
              .difference(trailer::of(message(bytes), 5, phase::reduce, during))
              .empty());
  }
}

TEST_CASE("a seal finds every single bit of its message, and of its own, that differs") {
  auto const sent = message(45);
  trailer const due = trailer::of(sent, 5, phase::reduce, during);
  auto const flip = [](std::span<std::byte> bytes, std::size_t bit) {
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
  };
  for (std::size_t bit = 0; bit < 8 * sent.size(); ++bit) {
    auto arrived = sent;
    flip(arrived, bit);
    check_says(due, trailer::of(arrived, 5, phase::reduce, during), "its bytes are not those that were sent");
  }
  for (std::size_t bit = 0; bit < 8 * sizeof(trailer); ++bit) {
    trailer given = due;
    flip(std::as_writable_bytes(std::span(&given, 1)), bit);
    check_says(given, due, "its checksum trailer is missing or damaged");
  }
  check_says(trailer{}, due, "trailer is missing or damaged"); // nothing was written
}

TEST_CASE("a seal tells a message of another call, place, length or version from the one that is due") {
  auto const sent = message(45);
  trailer const given = trailer::of(sent, 5, phase::reduce, during);
  auto const due = [&](std::uint32_t number, phase use, operation const& what) {
    return trailer::of(sent, number, use, what);
  };
  check_says(given, due(5, phase::reduce, {"ok_topk", 13}),
             "sent in ok_topk, call 12 and is received in ok_topk, call 13");
  check_says(given, due(5, phase::reduce, {"dense", 12}), "sent in ok_topk, call 12 and is received in dense, call 12");
  check_says(given, due(5, phase::reduce, {}), "is received in no operation");
  check_says(given, due(6, phase::reduce, during), "number 5 where number 6 is due, so one was lost or came twice");
  check_says(given, due(5, phase::balance, during), "one was lost or came twice");
  check_says(given, trailer::of(std::span(sent).first(44), 5, phase::reduce, during), "44 bytes arrived of 45");
  trailer newer = given;
  newer.mark += 1;
  check_says(given, newer, "trailer is of another version of oktopk");
  // Names are told apart by as much of them as a seal holds.
  std::string const name(30, 'x');
  trailer const long_one = due(5, phase::reduce, {name, 1});
  CHECK(long_one.difference(due(5, phase::reduce, {name + "y", 1})).empty());
  check_says(long_one, given, std::string(20, 'x') + ", call 1");
}

namespace {

template <class T>
std::vector<T> exact_numbers(int rank, std::size_t count) {
  seeded draw(static_cast<std::uint64_t>(rank) + 1);
  std::vector<T> numbers(count);
  for (T& x : numbers) {
    x = static_cast<T>(static_cast<std::int64_t>(draw.next() >> 44) - (std::int64_t(1) << 19)); // sums are exact
  }
  return numbers;
}

} // namespace

// That all ranks have the same bits where sums are rounded is in the suite.
TEMPLATE_TEST_CASE("a reduction in a ring is that of all ranks, whatever their number and the length", "", double,
                   std::int64_t) {
  auto const ranks = GENERATE(1, 2, 3, 4, 7);
  auto const count = GENERATE(0U, 1U, 2U, 3U, 6U, 7U, 8U, 100U);
  auto const op = GENERATE(reduction::sum, reduction::min, reduction::max);
  auto const expected = reduced(ranks, op, [&](int rank) { return exact_numbers<TestType>(rank, count); });
  oktopk::in_process::run(ranks, [&](in_process_communicator comm) {
    auto data = exact_numbers<TestType>(comm.rank(), count);
    std::vector<TestType> scratch;
    oktopk::reduce_in_ring(comm, std::span(data), op, phase::control, scratch);
    CHECK(data == expected);
  });
}

TEST_CASE("a reduction in a ring sends 2n(P-1)/P elements in 2(P-1) messages") {
  for (int const ranks : {1, 2, 3, 8}) {
    oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
      oktopk::counted comm(inner);
      std::size_t const count = 240; // a multiple of each number of ranks
      auto data = exact_numbers<double>(comm.rank(), count);
      std::vector<double> scratch;
      oktopk::reduce_in_ring(comm, std::span(data), reduction::sum, phase::reduce, scratch);
      auto const sent = comm.of_phase(phase::reduce);
      auto const others = static_cast<std::size_t>(ranks - 1);
      CHECK(static_cast<std::size_t>(sent.bytes_sent) ==
            2 * count * others / static_cast<std::size_t>(ranks) * sizeof(double));
      CHECK(static_cast<std::size_t>(sent.messages_sent) == 2 * others);
      CHECK(scratch.size() == count / static_cast<std::size_t>(ranks) + 1);
    });
  }
}

#endif
