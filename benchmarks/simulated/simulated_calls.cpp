// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Calls that SMPI leaves to the machine that simulates, or leaves out. The linker turns every call of them into one of
// these functions (option --wrap with the name as the linker sees it), so that library and benchmark, unchanged, run.
#include <mpi.h>

#include <chrono>

// std::chrono::steady_clock is to tell simulated time; SMPI intercepts only the clocks of C.
extern "C" std::chrono::steady_clock::time_point __wrap__ZNSt6chrono3_V212steady_clock3nowEv() {
  using clock = std::chrono::steady_clock;
  return clock::time_point(std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(MPI_Wtime())));
}

// "Not yet implemented" in SimGrid 3.32. No message of a simulation has more elements than an int counts.
extern "C" int __wrap_MPI_Get_elements_x(MPI_Status* status, MPI_Datatype type, MPI_Count* elements) {
  int count = 0;
  int const code = MPI_Get_count(status, type, &count);
  *elements = count;
  return code;
}
