// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#ifdef OKTOPK_TESTS_WITH_XXHASH

#include "comm/suite.hpp"
#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/damaging.hpp"
#include "support/messages.hpp"
#include "support/seeded.hpp"

#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/checked.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <vector>

using namespace oktopk_tests;
using oktopk::checked;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::phase;

namespace {

using E = host_execution;
using C = checked<damaging_communicator>;

struct seen_rank {
  std::vector<double> numbers; // indices and values of all calls that succeeded
  fault code = fault::none;
  std::string text;
};

// What the ranks have of three calls over a transport that damages one message.
template <class Algorithm>
std::vector<seen_rank> three_calls(int ranks, damage_plan& plan) {
  std::vector<seen_rank> seen(static_cast<std::size_t>(ranks));
  auto const threw = oktopk::in_process::run_and_collect(ranks, [&](in_process_communicator inner) {
    seen_rank& mine = seen[static_cast<std::size_t>(inner.rank())];
    auto const heard = outcome_of([&] {
      C comm{damaging_communicator(inner, plan)};
      typename Algorithm::options how{.length = 120};
      if constexpr (requires { how.k; }) {
        how.k = 12;
      }
      Algorithm allreduce(E(), comm, how);
      for (int call = 0; call < 3; ++call) {
        auto const& update = allreduce(seeded_accumulator<float>(how.length, comm.rank(), call));
        for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
          mine.numbers.push_back(update.indices()(i));
          mine.numbers.push_back(update.values()(i));
        }
      }
    });
    mine.code = heard.code;
    mine.text = heard.text;
  });
  for (auto const& each : threw) {
    CHECK(each == nullptr);
  }
  return seen;
}

// Damages each message in turn. Sums that a rank has are those of a run without damage, and somebody has an error
// unless nothing of it was to be seen: a message that comes twice after the last one of its line.
template <class Algorithm>
void check_damage(int ranks, damage_plan::kind what) {
  damage_plan none;
  auto const healthy = three_calls<Algorithm>(ranks, none);
  std::int64_t found = 0;
  std::int64_t done = 0;
  for (std::int64_t message = 0; message < none.sent; ++message) {
    damage_plan plan;
    plan.what = what;
    plan.message = message;
    plan.bit = static_cast<std::size_t>(message) * 2654435761U + 7;
    auto const seen = three_calls<Algorithm>(ranks, plan);
    if (!plan.done) {
      continue;
    }
    done += 1;
    bool some = false;
    for (std::size_t rank = 0; rank < seen.size(); ++rank) {
      bool const is_begin =
          seen[rank].numbers.size() <= healthy[rank].numbers.size() &&
          std::equal(seen[rank].numbers.begin(), seen[rank].numbers.end(), healthy[rank].numbers.begin());
      INFO("message " << message << ", rank " << rank << ": " << seen[rank].text);
      REQUIRE(is_begin);
      some = some || seen[rank].code != fault::none;
    }
    found += some ? 1 : 0;
    if (what != damage_plan::kind::twice) {
      INFO("message " << message);
      REQUIRE(some);
    }
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

TEMPLATE_TEST_CASE("whatever bit of whatever message flips, no sum is wrong, and somebody says so", "",
                   (oktopk::ok_topk<E, C>), (oktopk::gtopk<E, C>), (oktopk::topk_dsa<E, C>),
                   (oktopk::dense_ring<E, C>)) {
  check_damage<TestType>(3, damage_plan::kind::flip);
}

TEMPLATE_TEST_CASE("whatever message is lost, no sum is wrong, and somebody says so", "", (oktopk::ok_topk<E, C>),
                   (oktopk::dense_ring<E, C>)) {
  check_damage<TestType>(3, damage_plan::kind::lose);
}

TEMPLATE_TEST_CASE("whatever message comes twice, no sum is wrong", "", (oktopk::ok_topk<E, C>),
                   (oktopk::dense_ring<E, C>)) {
  check_damage<TestType>(3, damage_plan::kind::twice);
}

TEST_CASE("a flipped bit is told of with its sender and phase, on all ranks in the end") {
  damage_plan plan;
  plan.what = damage_plan::kind::flip;
  plan.message = 2; // the first of the other rank, or its seal
  std::vector<outcome> heard(2);
  oktopk::in_process::run(2, [&](in_process_communicator inner) {
    C comm{damaging_communicator(inner, plan)};
    heard[static_cast<std::size_t>(inner.rank())] = outcome_of([&] {
      comm.begin_operation("scheme", 3);
      for (int round = 0; round < 3; ++round) {
        pass_around(comm, comm.rank());
      }
    });
  });
  bool const first = heard[0].code == fault::damaged_message;
  outcome const& finder = heard[first ? 0 : 1];
  CHECK(finder.code == fault::damaged_message);
  CHECK(finder.says("message from rank " + std::string(first ? "1" : "0")));
  CHECK(heard[first ? 1 : 0].code != fault::none);
}

TEST_CASE("ranks in two operations hear which ones, both by name") {
  std::vector<outcome> heard(2);
  oktopk::in_process::run(2, [&](in_process_communicator inner) {
    checked comm(inner);
    comm.begin_operation(comm.rank() == 0 ? "one scheme" : "another one", comm.rank());
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] { pass_around(comm, comm.rank()); });
  });
  CHECK((heard[0].says("it was sent in another one, call 1 and is received in one scheme, call 0") ||
         heard[1].says("it was sent in one scheme, call 0 and is received in another one, call 1")));
  CHECK(heard[0].code != fault::none);
  CHECK(heard[1].code != fault::none);
}

TEST_CASE("a steady call of a checked communicator takes as many messages again") {
  oktopk::in_process::run(4, [](in_process_communicator inner) {
    oktopk::counted plain(inner);
    checked sealed{oktopk::counted(inner)};
    std::int64_t messages[2] = {};
    auto const calls = [&](auto comm, auto const& count) {
      oktopk::ok_topk<E, decltype(comm)> allreduce(E(), comm, {.length = 1000, .k = 50});
      auto const before = count();
      allreduce(seeded_accumulator<float>(1000, comm.rank(), 0));
      return count() - before;
    };
    messages[0] = calls(plain, [&] { return plain.total().messages_sent; });
    messages[1] = calls(sealed, [&] { return sealed.inner().total().messages_sent; });
    CHECK(messages[1] == 2 * messages[0]);
  });
}

#endif
