// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Ranks recurse deep, and communicate at the bottom.

#include "comm/testing.hpp"

#include <new>

using namespace oktopk_tests;

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

TEST_CASE("ranks use most of their 8 MiB of stack at once, and get the stack that is asked for") {
  CHECK(dig_on_all(4, 6 * mebibyte, {}) == std::vector<bool>(4, true));
  CHECK(dig_on_all(3, 40 * mebibyte, {.stack_bytes = std::size_t(64 * mebibyte)}) == std::vector<bool>(3, true));
  CHECK(dig_on_all(64, mebibyte / 4, {.stack_bytes = std::size_t(mebibyte)}) == std::vector<bool>(64, true));
}

TEST_CASE("a stack that nothing fits on is refused, and what fits on the least is told") {
  auto const run = [](std::size_t bytes) {
    return outcome_of([&] {
      oktopk::in_process::run(2,
                              [](in_process_communicator comm) {
                                CHECK(pass_around(comm, comm.rank()) == 1 - comm.rank());
                                auto const heard = outcome_of([&] { comm.isend({}, 2, oktopk::phase::control); });
                                CHECK(heard.code == oktopk::fault::communication);
                              },
                              {.stack_bytes = bytes});
    });
  };
  constexpr std::size_t least = oktopk::in_process::least_stack_bytes;
  for (std::size_t const bytes : {std::size_t(0), std::size_t(1), std::size_t(4096), least - 1}) {
    auto const heard = run(bytes);
    CHECK(unlike(heard, oktopk::fault::option_out_of_range,
                 "stack_bytes = " + std::to_string(bytes) + " is less than the least, " + std::to_string(least)) == "");
  }
  CHECK(run(least) == outcome());
}

TEST_CASE("a stack that no memory has is refused") {
  for (std::size_t const less : {0U, 5000U, 100000U}) {
    auto const heard = outcome_of([&] {
      oktopk::in_process::run(2, [](in_process_communicator) {},
                              {.stack_bytes = std::numeric_limits<std::size_t>::max() - less});
    });
    CHECK(unlike(heard, oktopk::fault::option_out_of_range, "no memory for the stack of rank 0 of 2: stack_bytes = ") ==
          "");
  }
}

TEST_CASE("an exception unwinds a deep stack") {
  for (std::exception_ptr const& thrown :
       oktopk::in_process::run_and_collect(3, [](in_process_communicator comm) { dig(comm, 4 * mebibyte, true); })) {
    CHECK_THROWS_WITH(std::rethrow_exception(thrown), "at the bottom");
  }
}
