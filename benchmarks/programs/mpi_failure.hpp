// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "arguments.hpp"

#include <oktopk/core/error.hpp>

#include <mpi.h>

#include <chrono>
#include <exception>
#include <string>
#include <thread>

namespace oktopk_programs {

/// Says what ended a program under MPI, once where that is possible, and gives its status.
///
/// Most errors of the library are on all ranks, and the first one tells. After any other the ranks do not leave
/// together: then the job is ended, since MPI_Finalize would wait for ranks that do not come. A rank that was told by
/// another one leaves that one the word for a second.
inline int report_failure(char const* program, std::exception const& failure) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  auto const* const known = dynamic_cast<oktopk::error const*>(&failure);
  if (known == nullptr || oktopk::breaks_communicator(known->code())) {
    if (known != nullptr && known->code() == oktopk::fault::abandoned) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    complain(program, "rank " + std::to_string(rank) + ": " + failure.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (rank == 0) {
    complain(program, failure.what());
  }
  return 1;
}

} // namespace oktopk_programs
