// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_subject.hpp"

#include <oktopk/select/chunked.hpp>

using namespace oktopk_tests;

namespace {

struct subject : ok_topk_subject<subject> {
  static constexpr ok_topk_rules rules{rule::chunked, rule::exact, false, 1, 2};
  template <class Comm>
  using algorithm = oktopk::ok_topk<execution, Comm, policies_of<oktopk::coo<>, oktopk::chunked, oktopk::exact>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .local_select = {.chunk = 64}, .partition = {.tau = 2}};
  }
};

} // namespace

TEST_CASE("ok_topk of chunks passes the suite of algorithms") {
  check_algorithm<subject>();
}
