// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// std::chrono::steady_clock tells the time of the machine that simulates, for SMPI intercepts only the clocks of C. The
// linker turns every call of it into one of this function (option --wrap with the name as the linker sees it), so that
// library and benchmark, unchanged, measure simulated time.
#include <mpi.h>

#include <chrono>

extern "C" std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  using clock = std::chrono::steady_clock;
  return clock::time_point(std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(MPI_Wtime())));
}
