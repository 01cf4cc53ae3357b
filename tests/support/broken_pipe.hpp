// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"

#include <csignal>
#include <signal.h> // POSIX: sigaction

// What a communicator whose library lets SIGPIPE end the program does about it.
namespace oktopk_tests {

/// A write to a rank that has left is no signal that ends the program, unless the program has an action of its own.
/// `connect()` gives a communicator. On all ranks together.
template <class Connect>
void check_ignores_broken_pipe(Connect connect) {
  struct restored {
    struct sigaction before = {};
    restored() { sigaction(SIGPIPE, nullptr, &before); }
    ~restored() { sigaction(SIGPIPE, &before, nullptr); }
  } const handler;
  static int heard = 0;
  heard = 0;
  signal(SIGPIPE, SIG_DFL);
  auto const first = connect();
  raise(SIGPIPE);
  signal(SIGPIPE, [](int) { heard += 1; });
  auto const second = connect();
  raise(SIGPIPE);
  CHECK(heard == 1);
}

} // namespace oktopk_tests
