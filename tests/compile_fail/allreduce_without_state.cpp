// expect: satisfaction of 'saves_its_state<|does not satisfy 'saves_its_state'
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// sgd over an allreduce whose state cannot be restored: the compiler must name the part that is missing.

#include <oktopk/algorithm/dense.hpp>
#include <oktopk/comm/self.hpp>
#include <oktopk/sgd.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct stateless : oktopk::dense<E, oktopk::self_communicator> {
  void restore() = delete;
};

using optimizer = oktopk::sgd<stateless>;
