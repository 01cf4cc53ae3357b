// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"

#include <oktopk/comm/fiber.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <exception>
#include <memory>
#include <stdexcept>

namespace {

using oktopk::detail::fiber;

constexpr std::size_t small_stack = std::size_t(256) << 10;

// Uses at least `bytes` of stack, in frames the compiler cannot fold; calls `at_the_bottom` there.
template <class Call>
[[gnu::noinline]] int descend(std::ptrdiff_t bytes, Call const& at_the_bottom) {
  constexpr std::size_t frame_bytes = 2048;
  char volatile frame[frame_bytes];
  frame[0] = 1;
  frame[frame_bytes - 1] = static_cast<char>(bytes % 7);
  if (bytes <= 0) {
    at_the_bottom();
    return frame[0];
  }
  int const below = descend(bytes - static_cast<std::ptrdiff_t>(frame_bytes), at_the_bottom);
  return below + frame[0] + (frame[frame_bytes - 1] == static_cast<char>(bytes % 7) ? 0 : 1000000);
}

} // namespace

TEST_CASE("a fibre runs from where it left, with its locals, until it ends") {
  std::string log;
  fiber* self = nullptr;
  fiber one(
      [&] {
        std::string mine = "a";
        log += mine;
        self->leave();
        mine += "b";
        log += mine;
        self->leave();
        log += "c";
      },
      small_stack);
  self = &one;
  log += "0";
  one.resume();
  CHECK_FALSE(one.finished());
  log += "1";
  one.resume();
  log += "2";
  CHECK_FALSE(one.finished());
  one.resume();
  CHECK(one.finished());
  CHECK(log == "0a1ab2c");
  CHECK(one.failure() == nullptr);
}

TEST_CASE("many fibres take turns without touching each other") {
  constexpr int count = 200;
  std::vector<std::unique_ptr<fiber>> fibers;
  std::vector<int> sums(count, 0);
  for (int f = 0; f < count; ++f) {
    fibers.push_back(std::make_unique<fiber>(
        [&, f] {
          std::vector<int> locals;
          for (int turn = 0; turn < 10; ++turn) {
            locals.push_back(f * 100 + turn);
            fibers[static_cast<std::size_t>(f)]->leave();
          }
          for (int const x : locals) {
            sums[static_cast<std::size_t>(f)] += x;
          }
        },
        small_stack));
  }
  for (int turn = 0; turn <= 10; ++turn) {
    for (auto const& each : fibers) {
      REQUIRE_FALSE(each->finished());
      each->resume();
    }
  }
  for (int f = 0; f < count; ++f) {
    REQUIRE(fibers[static_cast<std::size_t>(f)]->finished());
    REQUIRE(sums[static_cast<std::size_t>(f)] == f * 1000 + 45);
  }
}

TEST_CASE("what a fibre throws is kept, not thrown by resume") {
  fiber failing([] { throw std::runtime_error("from inside"); }, small_stack);
  CHECK_NOTHROW(failing.resume());
  CHECK(failing.finished());
  REQUIRE(failing.failure() != nullptr);
  CHECK_THROWS_WITH(std::rethrow_exception(failing.failure()), "from inside");
}

TEST_CASE("a fibre can be left and resumed from deep inside its stack") {
  fiber* self = nullptr;
  int result = 0;
  fiber deep([&] { result = descend(200 << 10, [&] { self->leave(); }); }, std::size_t(1) << 20);
  self = &deep;
  deep.resume();
  REQUIRE_FALSE(deep.finished());
  deep.resume();
  CHECK(deep.finished());
  CHECK(result == 101);
}

TEST_CASE("a fibre that overruns its stack is stopped, not let into its neighbour's") {
  // Stacks of fibres made one after the other lie side by side: without a guard this would write into the next one's.
  std::vector<std::unique_ptr<fiber>> fibers;
  for (int f = 0; f < 4; ++f) {
    fibers.push_back(std::make_unique<fiber>(
        [] { descend(static_cast<std::ptrdiff_t>(small_stack) + (16 << 10), [] {}); }, small_stack));
  }
  for (std::size_t f = 0; f < fibers.size(); ++f) {
    pid_t const child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      // Quietly: without the test framework's handler, and without a sanitizer's report.
      std::signal(SIGSEGV, SIG_DFL);
      close(STDERR_FILENO);
      close(STDOUT_FILENO);
      fibers[f]->resume();
      _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_FALSE((WIFEXITED(status) && WEXITSTATUS(status) == 0));
  }
}
