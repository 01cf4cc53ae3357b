// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// What ranks of one process are made of, below their communicators: messages, the meeting place of an allreduce, who
// runs when, waits that are ready, late or stuck, and the clock and the messages of a simulated world.

#include "support/catch.hpp"
#include "support/caught.hpp"
#include "support/reduced.hpp"

#include <oktopk/comm/in_process_group.hpp>
#include <oktopk/comm/in_process_schedule.hpp>
#include <oktopk/comm/simulation.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace oktopk_tests;
using oktopk::fault;
using oktopk::phase;
using oktopk::reduction;
using oktopk::detail::call_ref;
using oktopk::detail::in_process_group;
using oktopk::detail::in_process_line;
using oktopk::detail::in_process_message;
using oktopk::detail::in_process_messages;
using oktopk::detail::in_process_rendezvous;
using oktopk::detail::in_process_schedule;
using oktopk::detail::simulated_events;
using oktopk::detail::wait_end;

namespace {

in_process_message side(bool receive, int owner, int peer, std::span<std::byte> bytes, phase use = phase::reduce) {
  in_process_message made;
  made.receive = receive;
  made.owner = owner;
  made.peer = peer;
  made.use = use;
  made.data = bytes.data();
  made.size = bytes.size();
  return made;
}

} // namespace

TEST_CASE("a line gives its messages in the order they came, and is used again when it was empty") {
  std::array<in_process_message, 3> messages{side(true, 0, 1, {}), side(true, 0, 1, {}), side(true, 0, 1, {})};
  in_process_line line;
  CHECK(line.empty());
  for (std::size_t const count : {1U, 2U, 3U, 1U}) {
    for (std::size_t i = 0; i < count; ++i) {
      line.push(&messages[i]);
      CHECK((!line.empty() && line.receives()));
    }
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(line.pop() == &messages[i]);
    }
    CHECK(line.empty());
  }
  line.push(&messages[0]);
  line.push(&messages[1]);
  CHECK(line.pop() == &messages[0]);
  line.push(&messages[2]);
  CHECK(line.pop() == &messages[1]);
  line.clear();
  CHECK(line.empty());
}

TEST_CASE("a message fills its room and no more, and tells how long it was") {
  std::array<std::byte, 4> bytes{std::byte(1), std::byte(2), std::byte(3), std::byte(4)};
  for (std::size_t const room : {0U, 3U, 4U, 6U}) {
    for (std::size_t const length : {0U, 3U, 4U}) {
      CAPTURE(room, length);
      std::vector<std::byte> place(8, std::byte(9));
      auto send = side(false, 0, 1, std::span(bytes).first(length));
      auto receive = side(true, 1, 0, std::span(place).first(room));
      deliver(send, receive);
      CHECK((send.done && receive.done));
      CHECK(receive.arrived == length);
      CHECK(receive.truncated == (length > room));
      for (std::size_t i = 0; i < place.size(); ++i) {
        CHECK(place[i] == (i < length && i < room ? bytes[i] : std::byte(9)));
      }
    }
  }
}

TEST_CASE("room for messages stays where it is, is handed out once at a time, and is used again") {
  in_process_messages room;
  std::vector<in_process_message*> taken;
  for (int i = 0; i < 100; ++i) {
    taken.push_back(room.take(side(false, i, 0, {})));
  }
  CHECK(std::set<in_process_message*>(taken.begin(), taken.end()).size() == 100);
  for (int i = 0; i < 100; ++i) {
    CHECK(taken[static_cast<std::size_t>(i)]->owner == i);
  }
  in_process_message* const released = taken[42];
  released->done = true;
  room.release(released);
  in_process_message* const again = room.take(side(true, 7, 0, {}));
  CHECK(again == released);
  CHECK((again->owner == 7 && !again->done));
}

TEST_CASE("the last rank that joins reduces for all, and the next allreduce begins when all have left") {
  for (reduction const op : {reduction::sum, reduction::min, reduction::max}) {
    auto const numbers_of = [](int rank) { return std::vector<double>{1.0 + rank, -2.0 * rank, 0.5}; };
    in_process_rendezvous place;
    std::array<std::vector<double>, 3> of_ranks{numbers_of(0), numbers_of(1), numbers_of(2)};
    for (int const rank : {2, 0, 1}) { // in any order
      CHECK((place.is_free() && !place.is_over()));
      place.join(rank, 3, std::span(of_ranks[static_cast<std::size_t>(rank)]), op);
    }
    for (auto const& each : of_ranks) {
      CHECK(each == reduced(3, op, numbers_of));
      CHECK((place.is_over() && !place.is_free()));
      place.leave();
    }
    CHECK((place.is_free() && !place.is_over()));
  }
}

TEST_CASE("an allreduce of different lengths changes nothing, and each rank hears of it as it leaves") {
  in_process_rendezvous place;
  std::vector<float> first(3, 1);
  std::vector<float> second(2, 1);
  place.join(0, 2, std::span(first), reduction::sum);
  place.join(1, 2, std::span(second), reduction::sum);
  for (int rank = 0; rank < 2; ++rank) {
    auto const heard = outcome_of([&] { place.leave(); });
    CHECK(heard.code == fault::communication);
    CHECK(heard.says("different lengths"));
  }
  CHECK((first == std::vector<float>(3, 1) && second == std::vector<float>(2, 1)));
  place.join(0, 1, std::span(first), reduction::sum);
  CHECK(outcome_of([&] { place.leave(); }).code == fault::none);
}

TEST_CASE("a call without a type calls the object it was made of") {
  int calls = 0;
  auto const count = [&] { return std::to_string(++calls); };
  call_ref<std::string> const one(count);
  call_ref<std::string> const copy = one;
  CHECK(one() == "1");
  CHECK(copy() == "2");
  CHECK(calls == 2);
}

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr auto no_limit = std::chrono::nanoseconds(0);

constexpr auto nothing = [] { return std::string("for nothing"); };

} // namespace

TEST_CASE("a rank runs until it waits, and goes on once what it waits for is there") {
  in_process_schedule schedule(2);
  std::vector<std::string> log;
  bool told = false;
  std::vector<int> left;
  auto const thrown = schedule.run(
      [&](int rank) {
        if (rank == 0) {
          log.push_back("0 waits");
          CHECK(schedule.wait(
                    0, [&] { return told; }, nothing, no_limit) == wait_end::ready);
          log.push_back("0 goes on");
        } else {
          log.push_back("1 tells");
          told = true;
        }
      },
      stack_bytes, [&](int rank) { left.push_back(rank); });
  CHECK(log == std::vector<std::string>{"0 waits", "1 tells", "0 goes on"});
  CHECK(left == std::vector<int>{1, 0});
  CHECK((thrown.size() == 2 && !thrown[0] && !thrown[1]));
}

TEST_CASE("where nobody can go on all waits end stuck, with what each rank waits for") {
  in_process_schedule schedule(2);
  schedule.run(
      [&](int rank) {
        CHECK(schedule.wait(
                  rank, [] { return false; }, [rank] { return "for " + std::to_string(7 + rank); }, no_limit) ==
              wait_end::stuck);
      },
      stack_bytes, [](int) {});
  CHECK(schedule.stuck_report() == "deadlock: no rank can go on; rank 0 waits for 7; rank 1 waits for 8");
}

TEST_CASE("in a simulation a wait is late by the simulated clock, which needs no time") {
  oktopk::in_process::simulation how;
  how.faults.faults = {{oktopk::in_process::mishap::loss, 0, 1, {}, 0}};
  auto made = std::make_unique<simulated_events>(how, 1);
  simulated_events& events = *made;
  in_process_schedule schedule(1, std::move(made));
  auto const begun = std::chrono::steady_clock::now();
  schedule.run(
      [&](int) {
        events.before_message(schedule, 0);
        CHECK(events.strike_send(0, 8) != nullptr); // else a wait in vain is a deadlock
        CHECK(schedule.wait(
                  0, [] { return false; }, nothing, std::chrono::hours(1)) == wait_end::late);
        CHECK(schedule.now() >= std::chrono::hours(1));
      },
      stack_bytes, [](int) {});
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::minutes(1));
}

TEST_CASE("a message under way arrives when its time has come, and not where its owner has given it up") {
  simulated_events events({}, 2);
  std::array<std::byte, 2> sent{std::byte(1), std::byte(2)};
  std::array<std::byte, 2> room{};
  in_process_message from;
  in_process_message to;
  from.data = sent.data();
  to.data = room.data();
  from.size = to.size = 2;
  events.launch(from, &to);
  CHECK((events.under_way() == 1 && !to.done));
  events.advance_to(events.next_arrival());
  events.deliver_due();
  CHECK((events.under_way() == 0 && to.done && room == sent));
  events.launch(from, &to);
  events.recall(to.fiber, nullptr);
  CHECK((events.under_way() == 0 && events.next_arrival() == simulated_events::never));
}

TEST_CASE("ranks of a world exchange messages in their group, and each ends with what it threw") {
  in_process_schedule schedule(2);
  in_process_messages messages;
  in_process_group all(schedule, messages, {0, 1});
  std::array<int, 2> numbers{5, 0};
  auto const thrown = schedule.run(
      [&](int rank) {
        CHECK(all.size() == 2);
        if (rank == 1) {
          throw std::string("over");
        }
        all.set_time_limit(0, std::chrono::seconds(3));
        CHECK(all.time_limit(0) == std::chrono::seconds(3));
        CHECK(all.time_limit(1) == oktopk::usual_time_limit);
        std::array<in_process_message*, 2> both{};
        for (bool const receives : {false, true}) { // to itself
          in_process_message message;
          message.receive = receives;
          message.data = reinterpret_cast<std::byte*>(&numbers[receives ? 1 : 0]);
          message.size = sizeof(int);
          both[receives ? 1 : 0] = all.post(message);
        }
        CHECK((both[0]->done && both[1]->done && numbers[1] == 5));
      },
      stack_bytes, [&](int rank) { all.forget(rank); });
  CHECK((!thrown[0] && thrown[1]));
}
