// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_reference.hpp"
#include "algorithm/ok_topk_volume.hpp"
#include "algorithm/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/partition/balanced.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

/// What no other subject has: entries of 12 bytes, a local selector without a capacity beside an exact global one.
struct subject {
  using value_type = double;
  using index_type = std::int32_t;
  template <class Comm>
  using algorithm =
      oktopk::ok_topk<execution, Comm,
                      oktopk_tests::policies_of<oktopk::coo<double, std::int32_t>, oktopk::unguarded_threshold,
                                                oktopk::exact, oktopk::balanced>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {
        .length = length, .k = k, .local_select = {.tau_prime = 3}, .partition = {.tau = 2}, .schedule = {.bucket = 3}};
  }

  static std::string volume_fault(record_of<subject> const& call, int ranks, shape what) {
    return ok_topk_volume_fault<subject>(call, ranks, what, {.sizes_announced = true});
  }

  static std::string reference_fault(run_of<subject> const& run, shape what) {
    return ok_topk_reference_fault<subject>(run, what, {rule::unguarded, rule::exact, false, 3, 2});
  }
};

} // namespace

TEST_CASE("ok_topk with entries of 12 bytes and mixed selectors keeps the invariants") {
  check_invariants<subject>();
}

TEST_CASE("ok_topk with entries of 12 bytes and mixed selectors refuses bad accumulators") {
  check_bad_accumulators<subject>();
}

TEST_CASE("ok_topk with entries of 12 bytes and mixed selectors goes on from a saved state") {
  check_continuation<subject>();
}
