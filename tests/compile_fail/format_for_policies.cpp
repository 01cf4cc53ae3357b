// expect: static assertion failed.*: oktopk: P::format is no sparse_format
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A format, as it was written once, in the place of the policies.

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

void use(oktopk::ok_topk<E, oktopk::self_communicator, oktopk::coo<double>>& allreduce) {
  allreduce.k();
}
