// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_reference.hpp"
#include "algorithm/ok_topk_volume.hpp"
#include "algorithm/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

struct subject {
  using value_type = double;
  using index_type = std::int64_t;
  template <class Comm>
  using algorithm = oktopk::ok_topk<
      execution, Comm,
      oktopk_tests::policies_of<oktopk::coo<double, std::int64_t>, oktopk::reused_threshold, oktopk::reused_threshold>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length,
            .k = k,
            .local_select = {.tau_prime = 3},
            .global_select = {.tau_prime = 3},
            .partition = {.tau = 4},
            .schedule = {.bucket = 100}};
  }

  static std::string volume_fault(record_of<subject> const& call, int ranks, shape what) {
    return ok_topk_volume_fault<subject>(call, ranks, what, {});
  }

  static std::string reference_fault(run_of<subject> const& run, shape what) {
    return ok_topk_reference_fault<subject>(run, what, {rule::guarded, rule::guarded, false, 3, 4});
  }
};

} // namespace

TEST_CASE("ok_topk with double and 64-bit indices keeps the invariants") {
  check_invariants<subject>();
}

TEST_CASE("ok_topk with double and 64-bit indices refuses bad accumulators") {
  check_bad_accumulators<subject>();
}

TEST_CASE("ok_topk with double and 64-bit indices goes on from a saved state") {
  check_continuation<subject>();
}

TEST_CASE("ok_topk with double and 64-bit indices keeps its bound where selections are even") {
  check_bound<subject>();
}
