// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/timed_out.hpp>

#include <mpi.h>

#include <chrono>
#include <thread>

namespace oktopk::detail {

/// Asks MPI again and again until a request is complete, and gives the core away in between. Gives MPI's code.
///
/// Throws `timed_out` when that takes longer than the limit; the request is then still active. `describe()` says what
/// the rank has waited for.
template <class Describe>
int test_until_done(MPI_Request& handle, MPI_Status& status, std::chrono::nanoseconds limit, int rank,
                    Describe const& describe) {
  auto const start = std::chrono::steady_clock::now();
  for (;;) {
    int done = 0;
    int const code = MPI_Test(&handle, &done, &status);
    if (code != MPI_SUCCESS || done != 0) {
      return code;
    }
    if (std::chrono::steady_clock::now() - start > limit) {
      throw timed_out(rank, describe(), limit);
    }
    std::this_thread::yield();
  }
}

} // namespace oktopk::detail
