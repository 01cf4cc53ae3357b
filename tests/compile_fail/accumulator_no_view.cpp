// expect: satisfaction of 'vector_or_accumulation<|does not satisfy 'vector_or_accumulation'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// An accumulator that is no view: the compiler must name the part that fails.

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/comm/self.hpp>

#include <vector>

using E = Kokkos::DefaultHostExecutionSpace;

void use(oktopk::dense<E, oktopk::self_communicator>& allreduce, std::vector<float> const& accumulator) {
  allreduce(accumulator);
}
