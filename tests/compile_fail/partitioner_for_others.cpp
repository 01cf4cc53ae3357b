// expect: static assertion failed.*: oktopk: the partitioner does not serve this communicator
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A partitioner that asks for more than the communicator has: the relation of the two must be said in a sentence.

#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

#include <cstdint>
#include <span>

using E = Kokkos::DefaultHostExecutionSpace;

struct for_trees : oktopk::uniform {
  using uniform::uniform;
  template <class Space, class Comm>
    requires requires(Comm& comm) { comm.parent(); }
  struct step {
    explicit step(for_trees const&);
    std::span<std::int64_t const> run(oktopk::call_context<Space, Comm>&,
                                      oktopk::array_ref<std::int32_t const, E::memory_space>);
  };
};

using algorithm = oktopk::ok_topk<E, oktopk::self_communicator,
                                  oktopk_tests::policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, for_trees>>;

void use(algorithm::options const& how) {
  algorithm(E(), oktopk::self_communicator(), how);
}
