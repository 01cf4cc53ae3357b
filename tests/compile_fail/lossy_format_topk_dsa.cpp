// expect: static assertion failed.*: oktopk: topk_dsa takes lossless sparse formats
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A lossy format, which `topk_dsa` does not serve: that must be said in a sentence.

#include <oktopk/algorithm/topk_dsa.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct lossy : oktopk::coo<> {
  static constexpr bool lossless = false;
};

using algorithm = oktopk::topk_dsa<E, oktopk::self_communicator, lossy>;

void use(algorithm::options const& how) {
  algorithm(E(), oktopk::self_communicator(), how);
}
