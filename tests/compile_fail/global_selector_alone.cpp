// expect: static assertion failed.*: oktopk: the global selector does not select among the ranks
// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A selector that serves one rank alone, in the place of the global one: that must be said in a sentence.

#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/comm/self.hpp>

#include <cstdint>

using E = Kokkos::DefaultHostExecutionSpace;

struct hermit : oktopk::exact {
  using exact::exact;
  template <class Source>
  oktopk::selection<std::int32_t, float, E::memory_space>
  select(oktopk::selection_context<E, std::int32_t, float, oktopk::detail::one_rank> const&, Source const&,
         state<float>&) const;
};

using algorithm =
    oktopk::ok_topk<E, oktopk::self_communicator, oktopk_tests::policies_of<oktopk::coo<>, oktopk::exact, hermit>>;

void use(algorithm::options const& how) {
  algorithm(E(), oktopk::self_communicator(), how);
}
