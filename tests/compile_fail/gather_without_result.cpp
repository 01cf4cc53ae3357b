// expect: static assertion failed.*: oktopk: the gather does not serve this communicator
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A gather that keeps its result to itself: what it must give back has to be said in a sentence.

#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

using E = Kokkos::DefaultHostExecutionSpace;

struct silent : oktopk::balanced_allgatherv {
  using balanced_allgatherv::balanced_allgatherv;
  template <class Space, class Comm, class Format>
  struct step {
    explicit step(silent const&);
    template <class... Arguments>
    void run(Arguments&&...);
  };
};

using algorithm = oktopk::ok_topk<
    E, oktopk::self_communicator,
    oktopk_tests::policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, oktopk::evened, oktopk::rotated, silent>>;

void use(algorithm::options const& how) {
  algorithm(E(), oktopk::self_communicator(), how);
}
