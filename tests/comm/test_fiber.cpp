// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "comm/testing.hpp"

#include <oktopk/comm/fiber.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

using namespace oktopk_tests;

namespace {

using oktopk::detail::fiber;

constexpr int all_ranks = 5;

std::string label(std::string const& what, int rank, int round) {
  return what + " of rank " + std::to_string(rank) + " in round " + std::to_string(round);
}

std::string current_text() {
  try {
    throw;
  } catch (std::exception const& current) {
    return current.what();
  }
}

constexpr std::size_t small_stack = std::size_t(256) << 10;

// Uses at least `bytes` of stack, in frames the compiler cannot fold: others might read them.
[[gnu::noinline]] int descend(std::ptrdiff_t bytes) {
  constexpr std::size_t frame_bytes = 2048;
  char frame[frame_bytes];
  frame[frame_bytes - 1] = static_cast<char>(bytes % 7);
  asm volatile("" : : "r"(frame) : "memory");
  return (bytes <= 0 ? 0 : descend(bytes - static_cast<std::ptrdiff_t>(frame_bytes))) + frame[frame_bytes - 1];
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

TEST_CASE("a fibre that overruns its stack is stopped, not let into its neighbour's") {
  // Stacks of fibres made one after the other lie side by side: without a guard this would write into the next one's.
  std::vector<std::unique_ptr<fiber>> fibers;
  for (int f = 0; f < 4; ++f) {
    fibers.push_back(
        std::make_unique<fiber>([] { descend(static_cast<std::ptrdiff_t>(small_stack) + (16 << 10)); }, small_stack));
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

// Ranks are fibres of one thread, and the runtime keeps exceptions per thread: each rank must see its own.

TEST_CASE("ranks throw, handle and rethrow while others are in handlers of their own") {
  std::vector<int> finished;
  oktopk::in_process::run(all_ranks, [&](in_process_communicator comm) {
    CHECK(std::current_exception() == nullptr);
    for (int round = 0; round < 4; ++round) {
      std::string const outer = label("outer", comm.rank(), round);
      std::string const inner = label("inner", comm.rank(), round);
      try {
        throw std::runtime_error(outer);
      } catch (std::runtime_error const& caught) {
        pass_around(comm, round);
        CHECK(caught.what() == outer);
        CHECK(current_text() == outer);
        try {
          pass_around(comm, round);
          throw std::logic_error(inner);
        } catch (std::logic_error const& nested) {
          pass_around(comm, round); // communicates inside a handler inside a handler
          CHECK(nested.what() == inner);
          CHECK(current_text() == inner);
        }
        pass_around(comm, round);
        CHECK(current_text() == outer);
      }
      CHECK(std::current_exception() == nullptr);
      pass_around(comm, round);
    }
    finished.push_back(comm.rank());
  });
  CHECK(finished.size() == static_cast<std::size_t>(all_ranks));
}

TEST_CASE("a world may run inside a handler, and ends where it began") {
  std::vector<bool> clean;
  try {
    throw std::runtime_error("outside");
  } catch (std::runtime_error const&) {
    oktopk::in_process::run(all_ranks, [&](in_process_communicator comm) {
      clean.push_back(std::current_exception() == nullptr);
      try {
        throw std::logic_error(label("inside", comm.rank(), 0));
      } catch (std::logic_error const&) {
        pass_around(comm, 0);
        CHECK(current_text() == label("inside", comm.rank(), 0));
      }
    });
    CHECK(current_text() == "outside");
  }
  CHECK(std::current_exception() == nullptr);
  CHECK(clean == std::vector<bool>(all_ranks, true));
}
