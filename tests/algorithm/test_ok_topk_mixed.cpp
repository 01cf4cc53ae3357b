// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_subject.hpp"

#include <oktopk/partition/balanced.hpp>
#include <oktopk/select/reused_threshold.hpp>

using namespace oktopk_tests;

namespace {

/// What no other subject has: entries of 12 bytes, a local selector without a capacity beside an exact global one.
struct subject : ok_topk_subject<subject, double> {
  static constexpr volume_terms terms{.sizes_announced = true};
  static constexpr ok_topk_rules rules{rule::unguarded, rule::exact, false, 3, 2};
  template <class Comm>
  using algorithm = oktopk::ok_topk<
      execution, Comm,
      policies_of<oktopk::coo<double, std::int32_t>, oktopk::unguarded_threshold, oktopk::exact, oktopk::balanced>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {
        .length = length, .k = k, .local_select = {.tau_prime = 3}, .partition = {.tau = 2}, .schedule = {.bucket = 3}};
  }
};

} // namespace

TEST_CASE("ok_topk with entries of 12 bytes and mixed selectors passes the suite of algorithms") {
  check_algorithm<subject>();
}
