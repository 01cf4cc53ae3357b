// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks recurse deep, and communicate at the bottom.

#include "support/catch.hpp"
#include "support/messages.hpp"

#include <oktopk/comm/in_process.hpp>

#include <cstddef>
#include <stdexcept>
#include <vector>

using namespace oktopk_tests;
using oktopk::in_process_communicator;

namespace {

constexpr std::ptrdiff_t frame_bytes = 4096;
// The address sanitizer surrounds what lies on the stack, and a frame takes more than its array.
#ifdef __SANITIZE_ADDRESS__
constexpr std::ptrdiff_t frame_cost = 4 * frame_bytes;
#else
constexpr std::ptrdiff_t frame_cost = frame_bytes;
#endif
constexpr std::ptrdiff_t mebibyte = std::ptrdiff_t(1) << 20;

// Fills `bytes` of stack with this rank's mark, lets the others run, and looks whether the marks are still there.
[[gnu::noinline]] bool dig(in_process_communicator& comm, std::ptrdiff_t bytes, bool fail) {
  char volatile frame[frame_bytes];
  char const mark = static_cast<char>('a' + comm.rank());
  for (std::ptrdiff_t i = 0; i < frame_bytes; i += 64) {
    frame[i] = mark;
  }
  bool intact = true;
  if (bytes > 0) {
    intact = dig(comm, bytes - frame_cost, fail);
  } else {
    pass_around(comm, 0);
    pass_around(comm, 1);
    if (fail) {
      throw std::runtime_error("at the bottom");
    }
  }
  for (std::ptrdiff_t i = 0; i < frame_bytes; i += 64) {
    intact = intact && frame[i] == mark;
  }
  return intact;
}

std::vector<bool> dig_on_all(int ranks, std::ptrdiff_t bytes, oktopk::in_process::options const& how) {
  std::vector<bool> intact;
  oktopk::in_process::run(
      ranks, [&](in_process_communicator comm) { intact.push_back(dig(comm, bytes, false)); }, how);
  return intact;
}

} // namespace

TEST_CASE("ranks use most of their 8 MiB of stack at once") {
  CHECK(dig_on_all(4, 6 * mebibyte, {}) == std::vector<bool>(4, true));
}

TEST_CASE("ranks get the stack that is asked for") {
  CHECK(dig_on_all(3, 40 * mebibyte, {.stack_bytes = std::size_t(64 * mebibyte)}) == std::vector<bool>(3, true));
  CHECK(dig_on_all(64, mebibyte / 4, {.stack_bytes = std::size_t(mebibyte)}) == std::vector<bool>(64, true));
}

TEST_CASE("an exception unwinds a deep stack") {
  int caught = 0;
  oktopk::in_process::run(3, [&](in_process_communicator comm) {
    try {
      dig(comm, 4 * mebibyte, true);
    } catch (std::runtime_error const&) {
      caught += 1;
    }
    pass_around(comm, 0);
  });
  CHECK(caught == 3);
}
