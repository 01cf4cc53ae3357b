// expect: static assertion failed.*: oktopk: gtopk takes lossless sparse formats
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A lossy format, which `gtopk` does not serve: that must be said in a sentence.

#include <oktopk/algorithm/gtopk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct lossy : oktopk::coo<> {
  static constexpr bool lossless = false;
};

using algorithm = oktopk::gtopk<E, oktopk::self_communicator, lossy>;

void use(algorithm::options const& how) {
  algorithm(E(), oktopk::self_communicator(), how);
}
