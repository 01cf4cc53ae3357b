// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A wait that takes longer than the communicator's limit is an error that names the peer; the others hear of a deadlock
// or of their own limit, and nobody waits for ever.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/messages.hpp"

#include <oktopk/comm/in_process.hpp>

#include <chrono>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::in_process_communicator;
using oktopk::phase;

TEST_CASE("a rank that waits beyond the time limit is told for whom, while the other is still at work") {
  outcome heard;
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    comm.set_time_limit(std::chrono::milliseconds(20));
    if (comm.rank() == 0) {
      int number = 0;
      auto one = comm.irecv(room_in(number), 1, phase::gather);
      heard = outcome_of([&] { comm.wait_all(std::span(&one, 1)); });
      CHECK(one.active());
      comm.cancel(std::span(&one, 1));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(60)); // nobody else runs meanwhile: ranks share a thread
    }
  });
  CHECK(heard.code == fault::timed_out);
  CHECK(heard.says("rank 0 has waited to receive from rank 1 (gather) for more than 0.02"));
}

TEST_CASE("a message that is there in time is no fault, however late one asks for it") {
  int number = 0;
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    comm.set_time_limit(std::chrono::milliseconds(20));
    if (comm.rank() == 0) {
      auto one = comm.irecv(room_in(number), 1, phase::reduce);
      std::this_thread::sleep_for(std::chrono::milliseconds(40));
      comm.wait_all(std::span(&one, 1));
    } else {
      send_number(comm, 8, 0, phase::reduce);
    }
  });
  CHECK(number == 8);
}

TEST_CASE("an allreduce that a rank has left after the time limit is an error on those that join later") {
  std::vector<outcome> heard(3);
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    comm.set_time_limit(std::chrono::milliseconds(20));
    heard[static_cast<std::size_t>(comm.rank())] = outcome_of([&] {
      std::vector<float> numbers(1000, 1.0F); // gone when this rank has thrown
      if (comm.rank() == 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(60));
        receive_number<int>(comm, 0, phase::control); // the others get their turn, and leave
      }
      comm.allreduce(std::span(numbers), oktopk::reduction::sum, phase::reduce);
    });
    if (comm.rank() == 0) {
      send_number(comm, 1, 2, phase::control);
    }
  });
  CHECK(heard[0].code == fault::timed_out);
  CHECK(heard[0].says("rank 0 has waited for everybody to join an allreduce"));
  CHECK(heard[1].code != fault::none);
  CHECK(heard[2].code == fault::deadlock);
  CHECK(heard[2].says("has left an allreduce before all others had joined it"));
}

TEST_CASE("without a time limit a deadlock is still an error at once") {
  outcome heard;
  oktopk::in_process::run(1, [&](in_process_communicator outer) {
    static_cast<void>(outer);
    heard = outcome_of([] {
      oktopk::in_process::run(2, [](in_process_communicator comm) {
        comm.set_time_limit(std::chrono::hours(1));
        receive_number<int>(comm, 1 - comm.rank(), phase::control);
      });
    });
  });
  CHECK(heard.code == fault::deadlock);
}
