// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "support/catch.hpp"
#include "support/collect.hpp"

#include <oktopk/algorithm/random_mask.hpp>
#include <oktopk/comm/self.hpp>

#include <set>

using namespace oktopk_tests;

namespace {

/// The indices of some calls.
std::vector<std::vector<std::int32_t>> drawn(std::int64_t seed, std::int64_t k, int calls) {
  std::vector<std::vector<std::int32_t>> all;
  oktopk::self_communicator alone;
  oktopk::random_mask<execution, oktopk::self_communicator> allreduce(
      execution(), alone, {.length = 1000, .k = k, .local_select = {.seed = seed}});
  auto const zeros = to_view(std::vector<float>(1000, 0.0F));
  for (int call = 0; call < calls; ++call) {
    all.push_back(to_vector(allreduce(zeros).indices()));
  }
  return all;
}

} // namespace

TEST_CASE("random_mask draws other places for each call and seed, and every place in the long run") {
  auto const calls = drawn(1, 100, 100);
  CHECK(calls == drawn(1, 100, 100));
  CHECK(calls[0] != calls[1]);
  CHECK(calls[0] != drawn(2, 100, 1)[0]);
  std::set<std::int32_t> seen;
  for (auto const& each : calls) {
    CHECK(each.size() == 100);
    CHECK(std::is_sorted(each.begin(), each.end()));
    seen.insert(each.begin(), each.end());
  }
  CHECK(seen.size() == 1000); // one is missing with a probability of 1000 * 0.9^100 = 3 %: not with this seed
}

TEST_CASE_ON(inner, 4, "random_mask sends k values and no indices") {
  counting comm(inner);
  oktopk::random_mask<execution, counting> allreduce(execution(), comm, {.length = 1000, .k = 100});
  auto const before = comm.total();
  allreduce(to_view(std::vector<float>(1000, 1.0F)));
  CHECK(comm.total().words_sent() - before.words_sent() == 2.0 * 100 * 3 / 4);
  CHECK(allreduce.bound_words() == 2.0 * 100 * 3 / 4);
}

TEST_CASE("random_mask is refused where ranks have other seeds") {
  auto const all = outcomes_of(3, [](oktopk::in_process_communicator comm) {
    oktopk::random_mask<execution, oktopk::in_process_communicator>(
        execution(), comm, {.length = 100, .k = 10, .local_select = {.seed = comm.rank() == 1 ? 7 : 8}});
  });
  CHECK(unlike(all, oktopk::fault::ranks_disagree, "seed") == "");
}
