// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Simulated worlds: one number decides the order of events, and time is virtual. That planned faults happen, and are
// heard of in time, tests/simulate finds for every algorithm.

#include "comm/suite.hpp"
#include "comm/testing.hpp"

#include <oktopk/comm/revocation.hpp>

#include <set>

using namespace oktopk_tests;
using namespace std::chrono_literals;
using oktopk::in_process::injected_fault;
using oktopk::in_process::planned_fault;

namespace {

oktopk::in_process::options simulated(std::uint64_t seed, std::vector<planned_fault> const& faults = {}) {
  oktopk::in_process::options how;
  how.simulated = oktopk::in_process::simulation{.seed = seed, .faults = {faults}};
  return how;
}

// What every rank of a simulated world threw; dead ranks have "died".
template <class Body>
std::vector<outcome> outcomes_of(int ranks, std::uint64_t seed, std::vector<planned_fault> const& faults,
                                 Body const& body) {
  std::vector<outcome> heard;
  for (std::exception_ptr const& thrown : oktopk::in_process::run_and_collect(ranks, body, simulated(seed, faults))) {
    heard.push_back(oktopk::in_process::has_died(thrown) ? outcome{fault::none, "died"} : outcome_of(thrown));
  }
  return heard;
}

// All ranks exchange numbers with all; each writes down who came when. Gives that, and the time at the end.
struct history {
  std::vector<int> order;
  std::chrono::nanoseconds end{};

  bool operator==(history const&) const = default;
};

history exchange_everything(int ranks, std::uint64_t seed) {
  history seen;
  oktopk::in_process::run(
      ranks,
      [&](in_process_communicator comm) {
        std::vector<int> numbers(static_cast<std::size_t>(ranks), -1);
        std::vector<request> requests;
        oktopk::detail::cancel_on_unwind const guard(comm, requests);
        int const mine = 100 + comm.rank();
        for (int other = 0; other < ranks; ++other) {
          if (other != comm.rank()) {
            requests.push_back(comm.irecv(space_in(numbers[static_cast<std::size_t>(other)]), other, phase::reduce));
            requests.push_back(comm.isend(bytes_of(mine), other, phase::reduce));
            seen.order.push_back(comm.rank() * 100 + other);
          }
        }
        comm.wait_all(requests);
        seen.order.push_back(comm.rank());
        for (int other = 0; other < ranks; ++other) {
          CHECK(numbers[static_cast<std::size_t>(other)] == (other == comm.rank() ? -1 : 100 + other));
        }
        seen.end = std::max(seen.end, comm.elapsed());
      },
      simulated(seed));
  return seen;
}

} // namespace

TEST_CASE("a seed replays a simulated world to the last event, and other seeds take other courses") {
  std::set<std::vector<int>> courses;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    history const once = exchange_everything(4, seed);
    CHECK(once == exchange_everything(4, seed));
    CHECK(once.end > 0ns);
    courses.insert(once.order);
  }
  CHECK(courses.size() == 50);
}

TEST_CASE("simulated worlds keep the contract of a communicator, in whatever order") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    check_communicator([seed](auto const& body) {
      oktopk::in_process::run(
          5, [&](in_process_communicator comm) { body(comm); }, simulated(seed));
    });
  }
}

TEST_CASE("a deadlock is an error at once in a simulated world as well, whatever the time limit") {
  auto const heard = outcomes_of(
      2, 1, {}, [](in_process_communicator comm) { receive_number<int>(comm, 1 - comm.rank(), phase::control); });
  CHECK((heard[0].code == fault::deadlock && heard[1] == heard[0]));
}

TEST_CASE("where a rank has died and nobody has a limit, the deadlock says who has died") {
  planned_fault const death{.what = injected_fault::death, .rank = 1, .message = 1};
  auto const heard = outcomes_of(2, 5, {death}, [](in_process_communicator comm) {
    comm.set_time_limit(0ns);
    pass_around(comm, 1);
  });
  CHECK(unlike(heard[0], fault::deadlock, "rank 1 has died") == "");
}

TEST_CASE("a rank that has died cannot be kept alive, and run does not count it as a failure") {
  int after = 0;
  oktopk::in_process::run_with_deaths(
      2,
      [&](in_process_communicator comm) {
        if (comm.rank() == 1) {
          try {
            send_number(comm, 1, 0, phase::control);
          } catch (...) {
            after += 1; // swallowed: the next message ends it again
          }
          send_number(comm, 1, 0, phase::control);
          after += 100;
        }
      },
      simulated(1, {{.what = injected_fault::death, .rank = 1, .message = 1}}));
  CHECK(after == 1);
}

TEST_CASE("the survivors of a death have a communicator of their own, in their order") {
  std::vector<int> sums(5, -1);
  std::vector<int> places(5, -1);
  planned_fault const death{.what = injected_fault::death, .rank = 1, .message = 3};
  auto const heard = outcomes_of(5, 11, {death}, [&](in_process_communicator comm) {
    auto const me = static_cast<std::size_t>(comm.rank());
    auto const broken = outcome_of([&] {
      for (int round = 0; round < 4; ++round) {
        pass_around(comm, round);
      }
    });
    CHECK(broken.code != fault::none);
    in_process_communicator left = comm.survivors();
    places[me] = left.rank();
    CHECK(left.size() == 4);
    CHECK(left.time_limit() == comm.time_limit());
    CHECK(pass_around(left, left.rank()) == (left.rank() + 3) % 4);
    sums[me] = comm.rank();
    left.allreduce(std::span(&sums[me], 1), reduction::sum, phase::control);
    CHECK(outcome_of([&] { pass_around(comm, 0); }).says("cannot be used any more"));
  });
  CHECK(heard[1].text == "died");
  CHECK(places == std::vector<int>{0, -1, 1, 2, 3});
  CHECK(sums == std::vector<int>{9, -1, 9, 9, 9});
}

TEST_CASE("survivors may lose another one, and go on again") {
  std::vector<int> last(4, -1);
  std::vector<planned_fault> const deaths{{.what = injected_fault::death, .rank = 3, .message = 2},
                                          {.what = injected_fault::death, .rank = 0, .message = 12}};
  auto const heard = outcomes_of(4, 2, deaths, [&](in_process_communicator comm) {
    in_process_communicator now = comm;
    int losses = 0;
    while (losses < 2) {
      if (outcome_of([&] { pass_around(now, losses); }).code != fault::none) {
        now = now.survivors();
        losses += 1;
      }
    }
    CHECK(pass_around(now, now.rank()) == 1 - now.rank());
    last[static_cast<std::size_t>(comm.rank())] = 10 * losses + now.size();
  });
  CHECK((heard[0].text == "died" && heard[3].text == "died"));
  CHECK(last == std::vector<int>{-1, 22, 22, -1});
}

TEST_CASE("without a simulation, too, those that are left go on among themselves") {
  std::vector<int> sizes(3, -1);
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    if (comm.rank() == 1) {
      return;
    }
    in_process_communicator left = comm.survivors();
    sizes[static_cast<std::size_t>(comm.rank())] = left.size();
    CHECK(pass_around(left, left.rank()) == 1 - left.rank());
  });
  CHECK(sizes == std::vector<int>{2, -1, 2});
}

TEST_CASE("survivors wait no longer than the limit") {
  planned_fault const stop{.what = injected_fault::stop, .rank = 2, .message = 1, .time = 1h};
  auto const heard = outcomes_of(3, 4, {stop}, [](in_process_communicator comm) {
    comm.set_time_limit(1min);
    if (comm.rank() == 2) {
      pass_around(comm, 0);
    }
    comm.survivors();
  });
  CHECK(unlike(heard[0], fault::timed_out, "for all that are left to join the survivors") == "");
}

TEST_CASE("times that are too long to be counted are for ever") {
  auto const most = std::chrono::nanoseconds::max();
  planned_fault const delay{.what = injected_fault::delay, .message = 1, .time = most};
  auto const heard = outcomes_of(2, 1, {delay}, [&](in_process_communicator comm) {
    comm.set_time_limit(most);
    pass_around(comm, 1);
  });
  CHECK(heard[0].code == fault::deadlock); // nothing that could still happen
  CHECK(heard[1] == heard[0]);
}
