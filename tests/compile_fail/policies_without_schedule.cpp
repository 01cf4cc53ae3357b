// expect: static assertion failed.*: oktopk: P::schedule is no schedule
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Policies that name no schedule: the first error must say which member is missing.

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct incomplete {
  using format = oktopk::coo<>;
  using local_selector = oktopk::exact;
  using global_selector = oktopk::exact;
  using partitioner = oktopk::evened;
  using gather = oktopk::balanced_allgatherv;
};

void use(oktopk::ok_topk<E, oktopk::self_communicator, incomplete>& allreduce) {
  allreduce.k();
}
