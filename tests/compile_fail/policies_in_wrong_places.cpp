// expect: static assertion failed.*: oktopk: the partitioner does not serve this communicator: P::partitioner
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A gather in the place of the partitioner: the first error must name the member of the policies.

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct swapped : oktopk::default_policies {
  using partitioner = oktopk::balanced_allgatherv;
  using gather = oktopk::evened;
};

void use(oktopk::ok_topk<E, oktopk::self_communicator, swapped>& allreduce) {
  allreduce.k();
}
