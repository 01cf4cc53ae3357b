// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The parts of ranks of one process, below their communicators: messages, calls without a type, and turns.

#include "support/catch.hpp"

#include <oktopk/comm/in_process_group.hpp>

#include <array>
#include <chrono>
#include <set>

using oktopk::phase;
using oktopk::detail::in_process_line;
using oktopk::detail::in_process_message;
using oktopk::detail::in_process_messages;
using oktopk::detail::in_process_schedule;
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
  for (std::size_t const space : {0U, 3U, 4U, 6U}) {
    for (std::size_t const length : {0U, 3U, 4U}) {
      CAPTURE(space, length);
      std::vector<std::byte> place(8, std::byte(9));
      auto send = side(false, 0, 1, std::span(bytes).first(length));
      auto receive = side(true, 1, 0, std::span(place).first(space));
      deliver(send, receive);
      CHECK((send.done && receive.done));
      CHECK(receive.arrived == length);
      CHECK(receive.truncated == (length > space));
      for (std::size_t i = 0; i < place.size(); ++i) {
        CHECK(place[i] == (i < length && i < space ? bytes[i] : std::byte(9)));
      }
    }
  }
}

TEST_CASE("room for messages stays where it is, is handed out once at a time, and is used again") {
  in_process_messages space;
  std::vector<in_process_message*> taken;
  for (int i = 0; i < 100; ++i) {
    taken.push_back(space.take(side(false, i, 0, {})));
  }
  CHECK(std::set<in_process_message*>(taken.begin(), taken.end()).size() == 100);
  for (int i = 0; i < 100; ++i) {
    CHECK(taken[static_cast<std::size_t>(i)]->owner == i);
  }
  in_process_message* const released = taken[42];
  released->done = true;
  space.release(released);
  in_process_message* const again = space.take(side(true, 7, 0, {}));
  CHECK(again == released);
  CHECK((again->owner == 7 && !again->done));
}

TEST_CASE("a rank runs until it waits, and goes on once what it waits for is there") {
  in_process_schedule schedule(2);
  std::vector<std::string> log;
  bool heard = false;
  std::vector<int> left;
  auto const thrown = schedule.run(
      [&](int rank) {
        if (rank == 0) {
          log.push_back("0 waits");
          auto const has_heard = [&] { return heard; };
          auto const nothing = [] { return std::string("for nothing"); };
          CHECK(schedule.wait(0, has_heard, nothing, std::chrono::nanoseconds(0)) == wait_end::ready);
          log.push_back("0 goes on");
        } else {
          log.push_back("1 tells");
          heard = true;
        }
      },
      256 * 1024, [&](int rank) { left.push_back(rank); });
  CHECK(log == std::vector<std::string>{"0 waits", "1 tells", "0 goes on"});
  CHECK(left == std::vector<int>{1, 0});
  CHECK((thrown.size() == 2 && !thrown[0] && !thrown[1]));
}
