// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Messages that are given up, and the guard that gives them up when an exception passes.

#include "comm/suite.hpp"
#include "comm/testing.hpp"

#include <oktopk/comm/revocation.hpp>
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;
using oktopk::detail::cancel_on_unwind;

namespace {

// What rank 1 throws after rank 0 has done something with one request; both are waiting for nothing else.
template <class First, class Second>
outcome second_rank(First const& first, Second const& second) {
  auto const thrown = oktopk::in_process::run_and_collect(
      2, [&](in_process_communicator comm) { comm.rank() == 0 ? first(comm) : second(comm); });
  CHECK(thrown[0] == nullptr);
  return outcome_of(thrown[1]);
}

enum message_kind { receives, sends, loses };

} // namespace

TEST_CASE(
    "a message that was cancelled neither comes nor goes, and its bytes may go, also where its request was lost") {
  message_kind const what = GENERATE(receives, sends, loses);
  auto space = std::make_unique<int>(7);
  int untouched = 0;
  auto const heard = second_rank(
      [&](in_process_communicator comm) {
        request one = what == sends ? comm.isend(bytes_of(*space), 1, phase::reduce)
                                    : comm.irecv(space_in(*space), 1, phase::reduce);
        comm.cancel(std::span(&one, std::size_t(what == loses ? 0 : 1))); // lost as where the next start throws
        CHECK(one.active() == (what == loses));
        untouched = *space;
        what == loses ? void() : space.reset();
      },
      [&](in_process_communicator comm) {
        what == sends ? void(receive_number<int>(comm, 0, phase::reduce)) : send_number(comm, 3, 0, phase::reduce);
      });
  CHECK(untouched == 7);
  CHECK((what != loses || *space == 7)); // what comes later is not written there
  CHECK(unlike(heard, fault::abandoned,
               "rank 0 has given up: rank 0 left a collective by an exception. Its messages no longer match") == "");
}

TEST_CASE("a message that has arrived may be cancelled: of several each is, and what is inactive does not matter") {
  int arrived = 0;
  int space = 0;
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    if (comm.rank() == 1) {
      send_number(comm, 5, 0, phase::reduce);
      return;
    }
    std::vector<request> several(4);
    several[1] = comm.irecv(space_in(arrived), 1, phase::reduce);
    several[2] = comm.irecv(space_in(space), 1, phase::gather);
    comm.wait_all(std::span(several).subspan(1, 1));
    several[1] = several[3];
    several[0] = comm.isend(bytes_of(space), 1, phase::balance);
    comm.cancel(several);
    for (request const& each : several) {
      CHECK_FALSE(each.active());
    }
    comm.cancel(several); // again, for nothing
  });
  CHECK(arrived == 5);
}

TEST_CASE("a rank that has cancelled and tries again hears of the deadlock that this made") {
  auto const heard = outcomes_of(2, [](in_process_communicator comm) {
    CHECK(outcome_of([&] {
            cancel_on_unwind const guard(comm);
            receive_number<int>(comm, 1 - comm.rank(), phase::reduce);
          }).code == fault::deadlock);
    send_number(comm, 1, 1 - comm.rank(), phase::reduce);
  });
  CHECK((heard[0].code == fault::deadlock && heard[1].code == fault::deadlock));
}

TEST_CASE("a lone rank has nothing to cancel, and goes on") {
  oktopk::self_communicator comm;
  std::vector<oktopk::self_communicator::request> none(3);
  CHECK_THROWS_AS(
      [&] {
        cancel_on_unwind const guard(comm, none);
        throw std::runtime_error("in between");
      }(),
      std::runtime_error);
  double x = 2.5;
  CHECK_NOTHROW(comm.allreduce(std::span(&x, 1), reduction::sum, phase::reduce));
}

TEST_CASE("the guard cancels where an exception leaves its scope") {
  auto const heard = second_rank(
      [](in_process_communicator comm) {
        request single;
        std::array<request, 2> pair{};
        std::vector<request> growing;
        std::vector<int> spaces(4);
        try {
          cancel_on_unwind const guard(comm, single, pair, growing);
          single = comm.irecv(space_in(spaces[0]), 1, phase::reduce);
          pair[1] = comm.irecv(space_in(spaces[1]), 1, phase::reduce);
          growing.push_back(comm.irecv(space_in(spaces[2]), 1, phase::gather));
          growing.push_back(comm.isend(bytes_of(spaces[3]), 1, phase::gather));
          throw std::runtime_error("in between");
        } catch (std::runtime_error const&) {
        }
        CHECK_FALSE(single.active());
        CHECK_FALSE(pair[1].active());
        CHECK_FALSE(growing[0].active());
        CHECK_FALSE(growing[1].active());
        communicating::check_left(comm, 1, 1);
      },
      [](in_process_communicator comm) { send_number(comm, 3, 0, phase::reduce); });
  CHECK(heard.code == fault::abandoned);
}

TEST_CASE_ON(comm, 2, "the guard leaves messages alone where its scope is left otherwise") {
  int space = 0;
  request receive;
  {
    cancel_on_unwind const guard(comm, receive);
    receive = comm.irecv(space_in(space), 1 - comm.rank(), phase::reduce);
    try {
      throw std::runtime_error("caught inside");
    } catch (std::runtime_error const&) {
    }
  }
  CHECK(receive.active());
  send_number(comm, 5 + comm.rank(), 1 - comm.rank(), phase::reduce);
  comm.wait_all(std::span(&receive, 1));
  CHECK(space == 6 - comm.rank());
}

TEST_CASE("the guard knows its own rank's exceptions from those that pass, or have passed, elsewhere") {
  // Says goodbye on the way out, with all ranks, while an exception passes on this one.
  struct farewell {
    in_process_communicator comm;
    int* heard;
    ~farewell() {
      request receive;
      cancel_on_unwind const guard(comm, receive);
      *heard = pass_around(comm, comm.rank());
    }
  };
  std::vector<int> heard(3, -1);
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    auto const me = static_cast<std::size_t>(comm.rank());
    if (comm.rank() == 1) {
      try {
        farewell const last{comm, &heard[me]};
        throw std::runtime_error("passing");
      } catch (std::runtime_error const&) {
      }
    } else {
      farewell const last{comm, &heard[me]};
    }
    pass_around(comm, 0); // works still
  });
  CHECK(heard == std::vector<int>{2, 0, 1});
}
