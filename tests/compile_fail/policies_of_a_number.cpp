// expect: static assertion failed.*: oktopk: P::local_selector is no selector
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A type that is no selector at all.

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct of_int : oktopk::default_policies {
  using local_selector = int;
};

void use(oktopk::ok_topk<E, oktopk::self_communicator, of_int>& allreduce) {
  allreduce.k();
}
