// expect: satisfaction of 'same_value_type<|because 'same_value_type<Kokkos::View<double
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An accumulator of other values than the algorithm's: the compiler must name the part that fails.

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

void use(oktopk::ok_topk<E, oktopk::self_communicator>& allreduce, Kokkos::View<double*, E::memory_space> accumulator) {
  allreduce(accumulator);
}
