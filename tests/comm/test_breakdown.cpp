// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator that has broken down: the first reason stays, and every later call hears it.

#include "support/catch.hpp"
#include "support/caught.hpp"

#include <oktopk/comm/breakdown.hpp>

#include <string>

using namespace oktopk_tests;
using oktopk::breakdown;
using oktopk::fault;

TEST_CASE("a communicator in order lets calls pass") {
  breakdown const none;
  CHECK_FALSE(none);
  CHECK(none.code() == fault::none);
  CHECK(none.reason().empty());
  CHECK_NOTHROW(none.throw_if_happened());
}

TEST_CASE("the first reason of a breakdown stays, with its fault") {
  breakdown seen;
  seen.note(fault::timed_out, "rank 3 has not answered");
  seen.note(fault::damaged_message, "a bit fell over");
  CHECK(static_cast<bool>(seen));
  CHECK(seen.code() == fault::timed_out);
  CHECK(seen.reason() == "rank 3 has not answered");
  for (int call = 0; call < 2; ++call) {
    CHECK(outcome_of([&] { seen.throw_if_happened(); }) ==
          outcome{fault::timed_out, "oktopk: the communicator cannot be used any more: rank 3 has not answered"});
  }
}

TEST_CASE("a breakdown without a sentence is one") {
  breakdown seen;
  seen.note(fault::communication, {});
  CHECK(static_cast<bool>(seen));
  CHECK(outcome_of([&] { seen.throw_if_happened(); }).code == fault::communication);
  seen.note(fault::abandoned, "rank 1 has left");
  CHECK(seen.reason().empty());
}
