// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_reference.hpp"
#include "algorithm/ok_topk_volume.hpp"
#include "algorithm/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>
#include <oktopk/select/chunked.hpp>

using namespace oktopk_tests;

namespace {

struct subject {
  using value_type = float;
  using index_type = std::int32_t;
  template <class Comm>
  using algorithm =
      oktopk::ok_topk<execution, Comm, oktopk_tests::policies_of<oktopk::coo<>, oktopk::chunked, oktopk::exact>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .local_select = {.chunk = 64}, .partition = {.tau = 2}};
  }

  static std::string volume_fault(record_of<subject> const& call, int ranks, shape what) {
    return ok_topk_volume_fault<subject>(call, ranks, what, {});
  }

  static std::string reference_fault(run_of<subject> const& run, shape what) {
    return ok_topk_reference_fault<subject>(run, what, {rule::chunked, rule::exact, false, 1, 2});
  }
};

} // namespace

TEST_CASE("ok_topk of chunks keeps the invariants") {
  check_invariants<subject>();
}

TEST_CASE("ok_topk of chunks refuses bad accumulators") {
  check_bad_accumulators<subject>();
}

TEST_CASE("ok_topk of chunks goes on from a saved state") {
  check_continuation<subject>();
}
