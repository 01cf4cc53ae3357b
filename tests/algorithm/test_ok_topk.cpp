// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_subject.hpp"

#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

struct reusing_subject : ok_topk_subject<reusing_subject, reused_policies> {
  static constexpr ok_topk_rules rules{rule::guarded, rule::guarded, false, 4, 5};

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length,
            .k = k,
            .local_select = {.tau_prime = 4},
            .global_select = {.tau_prime = 4},
            .partition = {.tau = 5}};
  }
};

/// With the periods of the paper.
struct with_defaults : ok_topk_subject<with_defaults, reused_policies> {
  static constexpr ok_topk_rules rules{rule::guarded, rule::guarded, false, 32, 64};

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }
};

} // namespace

TEST_CASE("ok_topk with reused thresholds passes the suite of algorithms") {
  check_algorithm<reusing_subject>();
}

TEST_CASE("ok_topk with reused thresholds keeps its bound where selections are even") {
  check_bound<reusing_subject>();
}

TEST_CASE("ok_topk with reused thresholds keeps everything over the default periods") {
  for (int const ranks : {3, 4}) {
    shape const what{4000, 400, 140};
    auto const once = run<with_defaults>(ranks, what, correlated{23, 90});
    CHECK(run_fault<with_defaults>(once, what, false) == "");
  }
  check_bound<with_defaults>(4, {10000, 1000, 70}, correlated{19, 35});
}
