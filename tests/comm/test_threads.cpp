// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Which communicators take calls from other threads: each by itself, decorators as what is inside them.

#include "support/catch.hpp"
#include "support/foreign_transport.hpp"

#include <oktopk/comm/concept.hpp>
#include <oktopk/comm/counted.hpp>
#include <oktopk/comm/in_process.hpp>
#include <oktopk/comm/self.hpp>

using namespace oktopk_tests;
using oktopk::takes_other_threads;

TEST_CASE("a lone rank takes calls from any thread, and so does what decorates it") {
  CHECK(takes_other_threads(oktopk::self_communicator()));
  CHECK(takes_other_threads(oktopk::counted(oktopk::self_communicator())));
}

TEST_CASE("ranks that share one thread take none from others, nor do a pair and a counter of them") {
  oktopk::in_process::run(2, [](oktopk::in_process_communicator comm) {
    CHECK(!takes_other_threads(comm));
    CHECK(!takes_other_threads(oktopk::counted(comm)));
    CHECK(!takes_other_threads(foreign_communicator(comm)));
  });
}
