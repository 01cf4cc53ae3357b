// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A wait that takes longer than the communicator's limit is an error that names the peer; the others hear of it
// at once, and nobody waits for ever.

#include "comm/testing.hpp"

#include <oktopk/comm/any_communicator.hpp>
#ifdef OKTOPK_TESTS_WITH_XXHASH
#include <oktopk/comm/checked.hpp>
#endif
#include <oktopk/comm/decorator.hpp>
#include <oktopk/comm/paired.hpp>
#include <oktopk/comm/revocation.hpp>
#include <oktopk/comm/time_limit.hpp>

#include <thread>
#include <tuple>

using namespace oktopk_tests;
using std::chrono::milliseconds;

namespace {

#ifdef OKTOPK_TESTS_WITH_XXHASH
using checking = oktopk::checked<in_process_communicator>;
using communicators = std::tuple<in_process_communicator, counted, checking>;
#else
using checking = void;
using communicators = std::tuple<in_process_communicator, counted>;
#endif

/// A bulk half with a time limit of its own, none at first, as NCCL's.
class limited : public oktopk::communicator_decorator<in_process_communicator> {
public:
  explicit limited(in_process_communicator inner)
      : communicator_decorator(inner), limit_(std::make_shared<std::chrono::nanoseconds>(0)) {}

  oktopk::time_limit_pair time_limits() const { return {*limit_, *limit_}; }
  void set_time_limits(oktopk::time_limit_pair const& both) { *limit_ = both.second; }
  std::chrono::nanoseconds time_limit() const { return *limit_; }

private:
  std::shared_ptr<std::chrono::nanoseconds> limit_;
};

} // namespace

TEST_CASE("a message that is there in time is no fault, however late one asks for it") {
  int number = 0;
  oktopk::in_process::run(2, [&](in_process_communicator comm) {
    comm.set_time_limit(milliseconds(20));
    if (comm.rank() == 0) {
      auto one = comm.irecv(space_in(number), 1, phase::reduce);
      std::this_thread::sleep_for(milliseconds(40));
      comm.wait_all(std::span(&one, 1));
    } else {
      send_number(comm, 8, 0, phase::reduce);
    }
  });
  CHECK(number == 8);
}

TEST_CASE("an allreduce that a rank has left after the time limit is an error on those that would join later") {
  auto const heard = outcomes_of(3, [](in_process_communicator comm) {
    comm.set_time_limit(milliseconds(20));
    std::vector<float> numbers(1000, 1.0F); // gone when this rank has thrown
    if (comm.rank() == 2) {
      std::this_thread::sleep_for(milliseconds(60));
      // The others get their turn, and leave.
      CHECK(outcome_of([&] { receive_number<int>(comm, 0, phase::control); }).code == fault::abandoned);
    }
    comm.allreduce(std::span(numbers), reduction::sum, phase::reduce);
  });
  CHECK(unlike(heard[0], fault::timed_out, "rank 0 has waited for everybody to join an allreduce") == "");
  CHECK(heard[1].code == fault::abandoned);
  CHECK(unlike(heard[2], fault::abandoned,
               "cannot be used any more: rank 0 has given up: rank 0 has waited for everybody") == "");
}

TEMPLATE_LIST_TEST_CASE("who has waited too long says in what, and what is complete, and tells all others", "",
                        communicators) {
  std::vector<outcome> heard(4);
  std::vector<outcome> again(4);
  constexpr bool tells_calls_apart = std::is_same_v<TestType, checking>;
  auto const call_of = [](int rank) { return tells_calls_apart ? 3 : rank; };
  oktopk::in_process::run(4, [&](in_process_communicator inner) {
    TestType comm(inner);
    auto const me = static_cast<std::size_t>(comm.rank());
    CHECK(comm.time_limit() == oktopk::usual_time_limit);
    if (comm.rank() == 0) {
      comm.set_time_limit(milliseconds(20));
    }
    comm.begin_operation("ok_topk", call_of(comm.rank()));
    heard[me] = outcome_of([&] {
      int numbers[2] = {};
      std::vector<typename TestType::request> several;
      oktopk::detail::cancel_on_unwind const guard(comm, several);
      if (comm.rank() == 0) {
        several.push_back(comm.irecv(space_in(numbers[0]), 1, phase::gather));
        several.push_back(comm.irecv(space_in(numbers[1]), 2, phase::gather));
        try {
          comm.wait_all(std::span(several));
        } catch (oktopk::error const&) {
          CHECK((tells_calls_apart || several[1].active()));
          throw;
        }
      } else if (comm.rank() == 1) {
        send_number(comm, 5, 0, phase::gather);
        receive_number<int>(comm, 3, phase::reduce); // waits for a rank that is at work
      } else if (comm.rank() == 3) {
        std::this_thread::sleep_for(milliseconds(60)); // nobody else runs meanwhile: ranks share a thread
        receive_number<int>(comm, 1, phase::balance);
      }
    });
    if (comm.rank() != 2) {
      again[me] = outcome_of([&] { send_number(comm, 1, 2, phase::control); });
    }
  });
  std::string const reason = heard[0].text.substr(std::string("oktopk: ").size());
  CHECK(heard[0].code == fault::timed_out);
  CHECK(reason.starts_with("rank 0 has waited to receive from rank 2 (gather)"));
  CHECK(reason.find(" in ok_topk, call " + std::to_string(call_of(0)) +
                    " for more than 0.020000 s, the time limit; complete: from rank 1 (gather)") != std::string::npos);
  std::string const told =
      "oktopk: rank 0 has given up (this rank was in ok_topk, call " + std::to_string(call_of(1)) + "): ";
  CHECK(heard[1] == outcome{fault::abandoned, told + reason});
  CHECK(heard[3].says("rank 0 has given up (this rank was in ok_topk, call 3)"));
  CHECK(again[0] == outcome{fault::timed_out, "oktopk: the communicator cannot be used any more: " + reason});
  CHECK(again[1].code == fault::abandoned);
}

TEMPLATE_TEST_CASE("a negative time limit is an error, and the limit is as before", "", in_process_communicator,
                   counted) {
  oktopk::in_process::run(2, [](in_process_communicator inner) {
    TestType comm(inner);
    comm.set_time_limit(std::chrono::seconds(3));
    for (std::chrono::nanoseconds const limit : {std::chrono::nanoseconds(-1), std::chrono::nanoseconds::min()}) {
      auto const heard = outcome_of([&] { comm.set_time_limit(limit); });
      CHECK(heard.code == fault::option_out_of_range);
      CHECK(heard.says("negative; 0 stands for no limit"));
      CHECK(outcome_of([&] { oktopk::time_limit_scope const scope(comm, limit); }).code == fault::option_out_of_range);
      CHECK(comm.time_limit() == std::chrono::seconds(3));
    }
    CHECK(outcome_of([&] { comm.set_time_limit(milliseconds(-20)); }).says("limit of -0.020000 s is"));
    CHECK(outcome_of([&] { comm.set_time_limit(std::chrono::nanoseconds(-1)); }).says("limit of -1 ns is"));
    comm.set_time_limit(std::chrono::nanoseconds(0));
    CHECK(comm.time_limit() == std::chrono::nanoseconds(0));
    CHECK(pass_around(comm, inner.rank()) == 1 - inner.rank()); // the ranks are still together
  });
}

TEST_CASE("messages that have come are not lost where another rank has given up") {
  int number = 0;
  auto const heard = outcomes_of(3, [&](in_process_communicator comm) {
    if (comm.rank() == 0) {
      auto one = comm.irecv(space_in(number), 1, phase::reduce);
      receive_number<int>(comm, 1, phase::control); // rank 1 has sent both by now
      comm.wait_all(std::span(&one, 1));
      receive_number<int>(comm, 1, phase::gather); // starts too late
    } else if (comm.rank() == 1) {
      int const eight = 8;
      auto one = comm.isend(bytes_of(eight), 0, phase::reduce);
      send_number(comm, 1, 0, phase::control);
      comm.wait_all(std::span(&one, 1));
    } else {
      comm.abort(oktopk::error(fault::bad_file, "no disk"));
      CHECK(outcome_of([&] { send_number(comm, 1, 0, phase::gather); }).code == fault::bad_file);
    }
  });
  CHECK(heard[2].code == fault::none);
  CHECK((heard[0].code == fault::abandoned && heard[1].code != fault::timed_out));
}

TEST_CASE_ON(inner, 1, "a scope brings back the time limits of both halves of a pair, also below decorators") {
  using std::chrono::seconds;
  limited bulk(inner);
  oktopk::counted comm{oktopk::paired{oktopk::counted{inner}, bulk}};
  {
    oktopk::time_limit_scope const limit(comm, seconds(5));
    CHECK((inner.time_limit() == seconds(5) && bulk.time_limit() == seconds(5)));
  }
  CHECK((inner.time_limit() == oktopk::usual_time_limit && bulk.time_limit() == seconds(0)));
  {
    oktopk::time_limit_scope const limit(inner, seconds(3));
    CHECK((inner.time_limit() == seconds(3) && bulk.time_limit() == seconds(0)));
  }
  CHECK(inner.time_limit() == oktopk::usual_time_limit);
  {
    oktopk::any_communicator any(comm);
    any.set_time_limits({seconds(2), seconds(4)});
    CHECK((inner.time_limit() == seconds(2) && bulk.time_limit() == seconds(4)));
    CHECK(any.time_limit() == seconds(4));
    any.set_time_limits({oktopk::usual_time_limit, seconds(0)});
  }
  CHECK(comm.number_object() == 0); // the control half counts the objects on a pair
  CHECK(inner.number_object() == 1);
  oktopk::detail::add_untagged_object(comm);
  CHECK(*inner.untagged_objects() == 1);
  CHECK(outcome_of([&] { oktopk::time_limit_scope const scope(bulk, seconds(-1)); }).code ==
        fault::option_out_of_range); // whatever the communicator checks
  CHECK(bulk.time_limit() == seconds(0));
}
