// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Programs that would hang, and ranks that fail: everybody hears of it.

#include "comm/testing.hpp"

#include <thread>

using namespace oktopk_tests;

TEST_CASE("ranks that wait for each other are told who waits for what") {
  auto const heard = outcomes_of(3, [](in_process_communicator comm) { // in a circle
    receive_number<int>(comm, (comm.rank() + 1) % 3, comm.rank() == 2 ? phase::gather : phase::reduce);
  });
  CHECK((heard[1] == heard[0] && heard[2] == heard[0]));
  CHECK(heard[0].code == fault::deadlock);
  CHECK(heard[0].text == "oktopk: deadlock: no rank can go on; rank 0 waits to receive from rank 1 (reduce); "
                         "rank 1 waits to receive from rank 2 (reduce); rank 2 waits to receive from rank 0 (gather)");
  auto const check_told = [](int ranks, std::string const& words, auto const& body) {
    auto const told = outcomes_of(ranks, body);
    CHECK(unlike(told[0], fault::deadlock, words) == "");
    for (int rank = 1; rank < ranks; ++rank) {
      bool const returned = words.find("rank " + std::to_string(rank) + " has returned") != std::string::npos;
      CHECK(told[static_cast<std::size_t>(rank)] == (returned ? outcome{} : told[0]));
    }
  };
  // Two ranks that both send first, as the strictest MPI would.
  check_told(2, "rank 0 waits to send to rank 1 (control); rank 1 waits to send to rank 0 (control)",
             [](in_process_communicator comm) {
               send_number(comm, 1, 1 - comm.rank(), phase::control);
               receive_number<int>(comm, 1 - comm.rank(), phase::control);
             });
  // A message of another phase is not the one that is waited for.
  check_told(2, "rank 0 waits to send to rank 1 (control); rank 1 waits to receive from rank 0 (partition)",
             [](in_process_communicator comm) {
               comm.rank() == 0 ? send_number(comm, 1, 1, phase::control)
                                : void(receive_number<int>(comm, 0, phase::partition));
             });
  // Several messages are all named.
  check_told(3,
             "rank 0 waits to receive from rank 1 (balance) and to receive from rank 2 (balance) and to send to rank 2 "
             "(threshold); rank 1 has returned; rank 2 has returned",
             [](in_process_communicator comm) {
               if (comm.rank() == 0) {
                 int numbers[3] = {};
                 std::array<request, 4> several = {comm.irecv(space_in(numbers[0]), 1, phase::balance), request(),
                                                   comm.irecv(space_in(numbers[1]), 2, phase::balance),
                                                   comm.isend(bytes_of(numbers[2]), 2, phase::threshold)};
                 comm.wait_all(several);
               }
             });
  // An allreduce that not everybody joins.
  check_told(3,
             "rank 0 waits for everybody to join an allreduce in phase reduce; rank 1 has returned; rank 2 waits for "
             "everybody",
             [](in_process_communicator comm) {
               float x = 1;
               if (comm.rank() != 1) {
                 comm.allreduce(std::span<float>(&x, 1), reduction::sum, phase::reduce);
               }
             });
}

TEST_CASE("when a rank fails, those that wait for it are told, and run gives the failure itself") {
  auto const body = [](in_process_communicator comm) {
    if (comm.rank() == 2) {
      throw std::runtime_error("rank 2 had enough");
    }
    receive_number<int>(comm, 2, phase::control);
  };
  auto const thrown = oktopk::in_process::run_and_collect(3, body);
  outcome const waiting = outcome_of(thrown[0]);
  CHECK(unlike(waiting, fault::deadlock, "rank 2 has failed") == "");
  CHECK(outcome_of(thrown[1]) == waiting);
  CHECK_THROWS_WITH(std::rethrow_exception(thrown[2]), "rank 2 had enough");
  CHECK_THROWS_WITH(oktopk::in_process::run(3, body), "rank 2 had enough");
}

TEST_CASE("of several failures run gives the first that is a cause, then who waited too long, then the deadlock") {
  auto const given = [](int ranks, auto const& body) {
    return outcome_of([&] { oktopk::in_process::run(ranks, body); });
  };
  CHECK(given(3, [](in_process_communicator comm) {
          if (comm.rank() == 0) {
            receive_number<int>(comm, 1, phase::control);
          }
          throw oktopk::error(fault::bad_file, "of rank " + std::to_string(comm.rank()));
        }) == outcome{fault::bad_file, "oktopk: of rank 1"});
  CHECK(given(3, [](in_process_communicator comm) {
          if (comm.rank() < 2) {
            // Rank 0 is told by rank 1.
            comm.set_time_limit(comm.rank() == 0 ? std::chrono::hours(1) : std::chrono::milliseconds(1));
            receive_number<int>(comm, 2, phase::control);
          } else {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            pass_around(comm, 0);
          }
        }).code == fault::timed_out);
  CHECK(given(3, [](in_process_communicator comm) {
          if (comm.rank() == 2) {
            comm.abort(oktopk::error(fault::bad_file, "no disk"));
          } else {
            receive_number<int>(comm, 2, phase::control);
          }
        }).says("rank 2 has given up: no disk"));
  CHECK(given(2, [](in_process_communicator comm) {
          comm.set_time_limit(std::chrono::hours(1)); // is not waited for
          receive_number<int>(comm, 1 - comm.rank(), phase::control);
        }).code == fault::deadlock);
}

TEST_CASE("what lives on the ranks' stacks is destroyed when a deadlock unwinds them") {
  constexpr int ranks = 4;
  auto const alive = std::make_shared<int>(0);
  auto const deep = [](in_process_communicator comm, auto const& self, std::shared_ptr<int> held, int depth) -> void {
    if (depth > 0) {
      self(comm, self, held, depth - 1);
    } else {
      receive_number<int>(comm, (comm.rank() + 1) % ranks, phase::control);
    }
  };
  auto const heard = outcomes_of(ranks, [&](in_process_communicator comm) { deep(comm, deep, alive, 10); });
  CHECK(heard[3].code == fault::deadlock);
  CHECK(alive.use_count() == 1);
}

TEST_CASE("a rank may catch the deadlock and return") {
  auto const heard = outcomes_of(2, [](in_process_communicator comm) {
    auto const mine = outcome_of([&] { receive_number<int>(comm, 1 - comm.rank(), phase::control); });
    if (comm.rank() == 1) {
      throw oktopk::error(mine.code, mine.text);
    }
  });
  CHECK((heard[0].code == fault::none && heard[1].code == fault::deadlock));
}

TEST_CASE("nothing is read from or written to the memory of a rank that is gone") {
  // What rank 0 leaves behind would lie in memory that went with it; here it outlives the rank, to be looked at.
  bool const receives = GENERATE(false, true);
  int left_behind = 1;
  int other = 2;
  auto const heard = outcomes_of(2, [&](in_process_communicator comm) {
    request one = receives == (comm.rank() == 0)
                      ? comm.irecv(space_in(comm.rank() == 0 ? left_behind : other), 1 - comm.rank(), phase::reduce)
                      : comm.isend(bytes_of(comm.rank() == 0 ? left_behind : other), 1 - comm.rank(), phase::reduce);
    if (comm.rank() == 0) {
      throw oktopk::error(fault::bad_file, "rank 0 cannot go on");
    }
    comm.wait_all(std::span(&one, 1));
  });
  CHECK(heard[0].code == fault::bad_file);
  CHECK(unlike(heard[1], fault::deadlock, "rank 0 has failed") == "");
  CHECK(left_behind == 1);
  CHECK(other == 2);
}

TEST_CASE("after a deadlock nobody meets what an unwound rank has left behind") {
  float sums[] = {1, 1};
  int number = 0;
  auto const heard = outcomes_of(2, [&](in_process_communicator comm) {
    if (comm.rank() == 1) {
      request const posted = comm.irecv(space_in(number), 0, phase::gather);
      CHECK(posted.active());
      CHECK(outcome_of([&] { receive_number<int>(comm, 0, phase::control); }).code == fault::deadlock);
    }
    comm.allreduce(std::span<float>(&sums[comm.rank()], 1), oktopk::reduction::sum, phase::reduce);
  });
  CHECK(heard[0].code == fault::deadlock);
  CHECK(unlike(heard[1], fault::deadlock,
               "cannot be used any more: " + heard[0].text.substr(std::string("oktopk: ").size())) == "");
  CHECK(sums[0] == 1);
  CHECK(sums[1] == 1);
}
