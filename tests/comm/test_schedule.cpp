// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks as fibres by themselves, below their communicators: who runs when, waits that are ready, late or stuck, and the
// clock and the messages of a simulated world.

#include "support/catch.hpp"

#include <oktopk/comm/in_process_group.hpp>
#include <oktopk/comm/in_process_schedule.hpp>
#include <oktopk/comm/simulation.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using oktopk::phase;
using oktopk::detail::in_process_group;
using oktopk::detail::in_process_message;
using oktopk::detail::in_process_messages;
using oktopk::detail::in_process_schedule;
using oktopk::detail::simulated_events;
using oktopk::detail::wait_end;

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
