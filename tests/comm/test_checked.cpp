// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef OKTOPK_TESTS_WITH_XXHASH

#include "comm/suite.hpp"
#include "comm/testing.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/checked.hpp>
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/self.hpp>

#include <deque>

using namespace oktopk_tests;
using oktopk::checked;
using oktopk::detail::operation;

namespace {

/// One message of all that the ranks of a run send, in the order in which they do, and what becomes of it.
struct damage_plan {
  enum class kind : std::uint8_t { none, flip, lose, twice };

  kind what = kind::none;
  std::int64_t message = 0;                  ///< which one, from 0 on
  std::size_t bit = 0;                       ///< the one to flip, modulo the bits of the message
  std::int64_t sent = 0;                     ///< messages so far
  bool done = false;                         ///< whether it has come to that
  std::deque<std::vector<std::byte>> kept{}; // what was sent instead
};

/// A transport over `in_process` that damages one message. All ranks have the same plan.
class damaging_communicator : public oktopk::communicator_decorator<oktopk::in_process_communicator> {
  using inner_type = oktopk::in_process_communicator;

public:
  damaging_communicator(inner_type inner, damage_plan& plan) : communicator_decorator(inner), plan_(&plan) {}

  request isend(std::span<std::byte const> out, int peer, oktopk::phase use) {
    if (plan_->sent++ != plan_->message || plan_->what == damage_plan::kind::none) {
      return inner().isend(out, peer, use);
    }
    plan_->done = true;
    auto& bytes = plan_->kept.emplace_back(out.begin(), out.end());
    switch (plan_->what) {
    case damage_plan::kind::flip:
      if (!bytes.empty()) {
        std::size_t const bit = plan_->bit % (8 * bytes.size());
        bytes[bit / 8] ^= std::byte(1U << (bit % 8));
      } else {
        plan_->done = false;
      }
      return inner().isend(bytes, peer, use);
    case damage_plan::kind::lose: return request(); // taken, and gone
    default: lost_.push_back(inner().isend(bytes, peer, use)); return inner().isend(out, peer, use);
    }
  }

  template <class E>
  void start(E const&, std::span<oktopk::bulk_message const> messages, std::span<request> requests) {
    oktopk::start_one_by_one(*this, messages, requests);
  }

private:
  damage_plan* plan_;
  std::vector<request> lost_;
};

using E = host_execution;
using C = checked<damaging_communicator>;

struct seen_rank {
  std::vector<double> numbers; // indices and values of all calls that succeeded
  outcome heard;
};

// What the ranks have of three calls over a transport that damages one message.
std::vector<seen_rank> three_calls(int ranks, damage_plan& plan) {
  std::vector<seen_rank> seen(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](in_process_communicator inner) {
    seen_rank& mine = seen[static_cast<std::size_t>(inner.rank())];
    mine.heard = outcome_of([&] {
      C comm{damaging_communicator(inner, plan)};
      oktopk::ok_topk<E, C> allreduce(E(), comm, {.length = 120, .k = 12});
      for (int call = 0; call < 3; ++call) {
        auto const& update = allreduce(seeded_accumulator<float>(120, comm.rank(), call));
        for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
          mine.numbers.push_back(update.indices()(i));
          mine.numbers.push_back(update.values()(i));
        }
      }
    });
  });
  return seen;
}

// Damages each message in turn. Sums that a rank has are those of a run without damage, and somebody has an error
// unless nothing of it was to be seen: a message that comes twice after the last one of its line.
void check_damage(int ranks, damage_plan::kind what) {
  damage_plan none;
  auto const healthy = three_calls(ranks, none);
  std::int64_t found = 0;
  std::int64_t done = 0;
  for (std::int64_t message = 0; message < none.sent; ++message) {
    damage_plan plan;
    plan.what = what;
    plan.message = message;
    plan.bit = static_cast<std::size_t>(message) * 2654435761U + 7;
    auto const seen = three_calls(ranks, plan);
    if (!plan.done) {
      continue;
    }
    done += 1;
    bool some = false;
    INFO("message " << message);
    for (std::size_t rank = 0; rank < seen.size(); ++rank) {
      INFO("rank " << rank << ": " << seen[rank].heard);
      REQUIRE(seen[rank].numbers.size() <= healthy[rank].numbers.size());
      REQUIRE(std::equal(seen[rank].numbers.begin(), seen[rank].numbers.end(), healthy[rank].numbers.begin()));
      some = some || seen[rank].heard.code != fault::none;
    }
    found += some ? 1 : 0;
    REQUIRE((some || what == damage_plan::kind::twice));
  }
  CHECK(done > 30);
  CHECK(2 * found > done);
}

} // namespace

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

// Other algorithms, and damage beside it: tests/simulate with --damage --checked.
TEST_CASE("whatever message is changed, lost or comes twice, no sum of ok_topk is wrong, and somebody says so") {
  check_damage(3, GENERATE(damage_plan::kind::flip, damage_plan::kind::lose, damage_plan::kind::twice));
}

TEST_CASE("a flipped bit is told of with its sender and phase, on all ranks in the end") {
  damage_plan plan;
  plan.what = damage_plan::kind::flip;
  plan.message = 2; // the first of the other rank, or its trailer
  auto const heard = outcomes_of(2, [&](in_process_communicator inner) {
    C comm{damaging_communicator(inner, plan)};
    comm.begin_operation("scheme", 3);
    for (int round = 0; round < 3; ++round) {
      pass_around(comm, comm.rank());
    }
  });
  bool const first = heard[0].code == fault::damaged_message;
  CHECK(unlike(heard[first ? 0 : 1], fault::damaged_message, "message from rank " + std::string(first ? "1" : "0")) ==
        "");
  CHECK(heard[first ? 1 : 0].code != fault::none);
}

TEST_CASE("ranks in two operations hear which ones, both by name") {
  auto const heard = outcomes_of(2, [](in_process_communicator inner) {
    checked comm(inner);
    comm.begin_operation(comm.rank() == 0 ? "one scheme" : "another one", comm.rank());
    pass_around(comm, comm.rank());
  });
  CHECK((heard[0].says("it was sent in another one, call 1 and is received in one scheme, call 0") ||
         heard[1].says("it was sent in one scheme, call 0 and is received in another one, call 1")));
  CHECK((heard[0].code != fault::none && heard[1].code != fault::none));
}

TEST_CASE_ON(inner, 4, "a steady call of a checked communicator takes as many messages again") {
  oktopk::counted plain(inner);
  checked sealed{oktopk::counted(inner)};
  auto const calls = [&](auto comm, auto const& count) {
    oktopk::ok_topk<E, decltype(comm)> allreduce(E(), comm, {.length = 1000, .k = 50});
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
    check_says(given, due, "what came in the place of its seal is none, or is damaged");
  }
  check_says(trailer{}, due, "is none, or is damaged"); // nothing was written
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
  check_says(given, newer, "sealed by another version of oktopk");
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
