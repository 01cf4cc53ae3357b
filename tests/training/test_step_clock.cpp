// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The clock of a step: begins with the first thing that happens, and forgets the step before.

#include "support/catch.hpp"

#include <oktopk/training/step_clock.hpp>

#include <chrono>
#include <thread>

using oktopk::detail::step_clock;

namespace {

void pass_time(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

} // namespace

TEST_CASE("a step begins with the first thing that happens in it, and not anew with the next") {
  step_clock clock(2);
  clock.begin_if_first();
  pass_time(5);
  clock.begin_if_first();
  CHECK(clock.now() >= 0.005);
  clock.of(1).ready = clock.now();
  clock.wait_begins();
  pass_time(5);
  clock.wait_ends();
  auto const& times = clock.times();
  CHECK(times.buckets.size() == 2);
  CHECK(times.buckets[1].ready >= 0.005);
  CHECK(times.wait_began >= times.buckets[1].ready);
  CHECK(times.wait_ended >= times.wait_began + 0.005);
}

TEST_CASE("the times of a step stay until the next one begins, which has none of them") {
  step_clock clock(1);
  clock.begin_if_first();
  clock.of(0) = {.ready = 1, .began = 2, .ended = 3};
  clock.note_absent();
  clock.note_absent();
  pass_time(5);
  clock.end_step();
  CHECK(clock.times().buckets[0].ended == 3);
  CHECK(clock.times().absent == 2);
  auto const before = std::chrono::steady_clock::now();
  clock.begin_if_first();
  double const now = clock.now();
  CHECK(std::chrono::duration<double>(now) <= std::chrono::steady_clock::now() - before);
  CHECK(clock.times().absent == 0);
  CHECK(clock.times().buckets[0].ready == 0);
  CHECK(clock.times().buckets[0].ended == 0);
  CHECK(clock.times().buckets.size() == 1);
}
