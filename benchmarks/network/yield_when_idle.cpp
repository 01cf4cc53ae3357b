// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Preloaded into ranks of MPICH, which outnumber the cores: its UCX asks for news without end and keeps the core from
// the rank that it waits for. Whoever finds no news yields, as Open MPI does with mpi_yield_when_idle.

#include <dlfcn.h>
#include <sched.h>
#include <sys/epoll.h>

extern "C" int epoll_wait(int descriptor, epoll_event* events, int most, int timeout) {
  using function = int (*)(int, epoll_event*, int, int);
  static auto const original = reinterpret_cast<function>(dlsym(RTLD_NEXT, "epoll_wait"));
  int const found = original(descriptor, events, most, timeout);
  if (timeout == 0 && found == 0) {
    sched_yield();
  }
  return found;
}
