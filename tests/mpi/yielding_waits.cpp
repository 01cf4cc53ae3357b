// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// MPICH polls without pause while it waits. With more ranks than cores every message then costs a time slice of the
// scheduler, and the tests take minutes instead of seconds. Through MPI's profiling interface the waits of this program
// become polls with a nap in between; Open MPI has an option that does as much.

#include <mpi.h>

#include <chrono>
#include <thread>

namespace {

// `poll` takes the address of a flag and gives an error code.
template <class Poll>
int until_done(Poll const& poll) {
  for (;;) {
    int done = 0;
    int const code = poll(&done);
    if (code != MPI_SUCCESS || done != 0) {
      return code;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

int finish(int code, MPI_Request* request) {
  return code != MPI_SUCCESS ? code : MPI_Wait(request, MPI_STATUS_IGNORE);
}

} // namespace

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  return until_done([&](int* done) { return PMPI_Test(request, done, status); });
}

int MPI_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status) {
  return until_done([&](int* done) { return PMPI_Testany(count, requests, index, done, status); });
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
  return until_done([&](int* done) { return PMPI_Testall(count, requests, done, statuses); });
}

int MPI_Allreduce(void const* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  return finish(PMPI_Iallreduce(from, to, count, type, op, comm, &request), &request);
}

int MPI_Barrier(MPI_Comm comm) {
  MPI_Request request = MPI_REQUEST_NULL;
  return finish(PMPI_Ibarrier(comm, &request), &request);
}

} // extern "C"
