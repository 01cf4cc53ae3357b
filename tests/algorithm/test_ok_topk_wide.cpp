// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_subject.hpp"

#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

struct subject : ok_topk_subject<subject, double, std::int64_t> {
  static constexpr ok_topk_rules rules{rule::guarded, rule::guarded, false, 3, 4};
  template <class Comm>
  using algorithm = oktopk::ok_topk<
      execution, Comm,
      policies_of<oktopk::coo<double, std::int64_t>, oktopk::reused_threshold, oktopk::reused_threshold>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length,
            .k = k,
            .local_select = {.tau_prime = 3},
            .global_select = {.tau_prime = 3},
            .partition = {.tau = 4},
            .schedule = {.bucket = 100}};
  }
};

} // namespace

TEST_CASE("ok_topk with double and 64-bit indices passes the suite of algorithms") {
  check_algorithm<subject>();
}

TEST_CASE("ok_topk with double and 64-bit indices keeps its bound where selections are even") {
  check_bound<subject>();
}
