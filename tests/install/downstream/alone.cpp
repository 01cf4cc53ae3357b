// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <oktopk/allreduce.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  Kokkos::ScopeGuard const kokkos(argc, argv);
  using space = Kokkos::DefaultHostExecutionSpace;

  Kokkos::View<float*, space::memory_space> const accumulator("accumulator", 100);
  accumulator(42) = -3;
  accumulator(7) = 1;

  oktopk::ok_topk<space, oktopk::self_communicator> allreduce(space(), oktopk::self_communicator(),
                                                              {.length = 100, .k = 1});
  auto const update = allreduce(accumulator);
  space().fence();
  bool const right = update.indices().extent(0) == 1 && update.indices()(0) == 42 && update.values()(0) == -3;
  std::puts(right ? "the one largest entry came back" : "wrong result");
  return right ? 0 : 1;
}
