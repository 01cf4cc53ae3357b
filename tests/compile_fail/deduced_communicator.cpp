// expect: static assertion failed.*: oktopk: no communicator: it needs .int rank.. const
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A communicator whose rank() is not const, through deduction: the first error is about the communicator.

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct unsteady : oktopk::self_communicator {
  int rank() { return 0; }
};

void use() {
  oktopk::ok_topk allreduce(E(), unsteady(), {.length = 10, .density = 0.1});
}
