// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The policies that docs/extending.md shows pass the suites that it names. The headers in extending/ are made of the page.

#include "archetypes/suite.hpp"
#include "codec/suite.hpp"
#include "exchange/deliverer_suite.hpp"
#include "exchange/gather_suite.hpp"
#include "partition/suite.hpp"
#include "select/suite.hpp"

#include "extending/above.hpp"
#include "extending/aligned.hpp"
#include "extending/at_least_one.hpp"
#include "extending/backwards.hpp"
#include "extending/pairs.hpp"
#include "extending/truncated16.hpp"
#include "extending/without_balance.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/sgd.hpp>

#include <set>

using namespace oktopk_tests;

TEST_CASE("aligned is a partitioner") {
  check_partitioner<aligned>();
}

TEST_CASE("at_least_one is a selector") {
  check_selector<at_least_one>();
}

TEST_CASE("without_balance is a gather") {
  check_gather<without_balance>();
}

TEST_CASE("above is a deliverer") {
  check_deliverer<above>();
  check_deliverer<above>({.magnitude = 2});
}

TEST_CASE("backwards meets everybody once") {
  using how = backwards;
  static_assert(oktopk::schedule<how>);
  for (int const ranks : rank_counts) {
    for (int rank = 0; rank < ranks; ++rank) {
      std::set<int> met;
      for (int step = 1; step < ranks; ++step) {
        int const to = how::destination(rank, step, ranks);
        CHECK((to >= 0 && to < ranks && to != rank));
        CHECK(how::source(to, step, ranks) == rank);
        met.insert(to);
      }
      CHECK(met.size() == static_cast<std::size_t>(ranks) - 1);
    }
  }
}

TEST_CASE("truncated16 is a codec") {
  using namespace oktopk_tests::codecs;
  CHECK(fault_on_finite<float>(truncated16(), std::numeric_limits<float>::max()) == "");
  CHECK(fault_on_finite<double>(truncated16(), std::numeric_limits<float>::max()) == "");
  CHECK(fault_on_non_finite<float>(truncated16()) == "");
}

TEST_CASE("ok_topk and sgd take all of them at once, and ask for no more than the concepts do") {
  using comm_type = counting; // as in the suites, whose steps these are then
  using selector_type = strict<at_least_one>;
  using allreduce_type = oktopk::ok_topk<
      execution, comm_type,
      policies_of<pairs<>, selector_type, selector_type, strict<aligned>, strict<backwards>, strict<without_balance>>>;
  for (int const ranks : {1, 2, 5, 8}) {
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      allreduce_type allreduce(execution(), comm_type(comm), {.length = 1000, .k = 3});
      std::vector<float> values(1000, 0.5F);
      values[100] = values[500] = values[999] = static_cast<float>(1 + comm.rank());
      auto const gradient = to_view(values);
      auto const check = [&](auto const& update) {
        CHECK(to_vector(update.indices()) == std::vector<std::int32_t>{100, 500, 999});
        CHECK(update.contributed().extent(0) == 3);
        CHECK(Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), update.values())(0) ==
              static_cast<float>(ranks * (ranks + 1)) / 2);
      };
      check(allreduce(gradient));
      // The accumulator is formed as it is selected from.
      oktopk::sgd optimizer(execution(), allreduce, {.learning_rate = 1});
      Kokkos::View<float*, memory> const weights("weights", 1000);
      check(optimizer.step(weights, gradient));
    });
  }
}
