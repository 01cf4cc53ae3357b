// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The seal that follows a message of a checked communicator: what it finds, and the sentence for it.

#ifdef OKTOPK_TESTS_WITH_XXHASH

#include "support/catch.hpp"

#include <oktopk/comm/checked.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

using oktopk::operation;
using oktopk::phase;
using seal = oktopk::detail::message_seal;

namespace {

operation const during{"ok_topk", 12};

std::vector<std::byte> message(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    made[i] = static_cast<std::byte>(37 * i + 11);
  }
  return made;
}

void check_says(seal const& sent, seal const& due, std::string const& part) {
  std::string const text = sent.difference(due);
  INFO(text);
  REQUIRE(text.find(part) != std::string::npos);
}

} // namespace

TEST_CASE("the seal of the message that is due finds no difference") {
  CHECK(sizeof(seal) == 64);
  for (std::size_t const bytes : {0U, 1U, 63U, 4096U}) {
    auto const sent = message(bytes);
    auto const copy = sent;
    CHECK(seal::of(sent, 5, phase::reduce, during).difference(seal::of(copy, 5, phase::reduce, during)).empty());
  }
}

TEST_CASE("a seal finds every single bit of its message that differs") {
  auto const sent = message(45);
  seal const given = seal::of(sent, 5, phase::reduce, during);
  for (std::size_t bit = 0; bit < 8 * sent.size(); ++bit) {
    auto arrived = sent;
    arrived[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    check_says(given, seal::of(arrived, 5, phase::reduce, during), "its bytes are not those that were sent");
  }
}

TEST_CASE("a seal finds every single bit of its own that differs") {
  auto const sent = message(45);
  seal const due = seal::of(sent, 5, phase::reduce, during);
  for (std::size_t bit = 0; bit < 8 * sizeof(seal); ++bit) {
    seal given = due;
    std::byte bytes[sizeof(seal)];
    std::memcpy(bytes, &given, sizeof given);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
    std::memcpy(&given, bytes, sizeof given);
    check_says(given, due, "what came in the place of its seal is none, or is damaged");
  }
  check_says(seal{}, due, "is none, or is damaged"); // nothing was written
}

TEST_CASE("a seal tells a message of another call, place or length from the one that is due") {
  auto const sent = message(45);
  seal const given = seal::of(sent, 5, phase::reduce, during);
  auto const due = [&](std::uint32_t number, phase use, operation const& what) {
    return seal::of(sent, number, use, what);
  };
  check_says(given, due(5, phase::reduce, {"ok_topk", 13}),
             "sent in ok_topk, call 12 and is received in ok_topk, call 13");
  check_says(given, due(5, phase::reduce, {"dense", 12}), "sent in ok_topk, call 12 and is received in dense, call 12");
  check_says(given, due(5, phase::reduce, {}), "is received in no operation");
  check_says(given, due(6, phase::reduce, during), "number 5 where number 6 is due, so one was lost or came twice");
  check_says(given, due(5, phase::balance, during), "one was lost or came twice");
  check_says(given, seal::of(std::span(sent).first(44), 5, phase::reduce, during), "44 bytes arrived of 45");
}

TEST_CASE("names of operations are told apart by as much of them as a seal holds") {
  std::string const name(30, 'x');
  operation const long_one{name, 1};
  operation const longer{name + "y", 1};
  auto const sent = message(3);
  CHECK(seal::of(sent, 0, phase::control, long_one).difference(seal::of(sent, 0, phase::control, longer)).empty());
  check_says(seal::of(sent, 0, phase::control, long_one), seal::of(sent, 0, phase::control, during),
             std::string(20, 'x') + ", call 1");
}

TEST_CASE("a seal of another version says so") {
  auto const sent = message(3);
  seal const given = seal::of(sent, 0, phase::control, during);
  seal due = given;
  due.mark += 1;
  check_says(given, due, "sealed by another version of oktopk");
}

#endif
