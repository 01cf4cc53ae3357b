// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_subject.hpp"

#include <oktopk/partition/balanced.hpp>

using namespace oktopk_tests;

namespace {

struct subject : ok_topk_subject<subject> {
  static constexpr ok_topk_rules rules{rule::exact, rule::exact, false, 1, 3};
  template <class Comm>
  using algorithm =
      oktopk::ok_topk<execution, Comm, policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, oktopk::balanced>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .partition = {.tau = 3}, .schedule = {.bucket = 1}};
  }
};

} // namespace

TEST_CASE("ok_topk with exact selectors and balanced regions passes the suite of algorithms") {
  check_algorithm<subject>();
}

TEST_CASE("ok_topk with exact selectors and balanced regions keeps its bound where selections are even") {
  check_bound<subject>();
}
