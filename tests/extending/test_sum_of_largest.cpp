// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// The algorithm that docs/extending.md shows passes the suite.

#include "algorithm/suite.hpp"
#include "extending/sum_of_largest.hpp"

using namespace oktopk_tests;

namespace {

struct subject {
  using value_type = float;
  using index_type = std::int32_t;
  template <class Comm>
  using algorithm = sum_of_largest<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }

  static std::string volume_fault(record_of<subject> const& call, int, shape) {
    return call.total().words_sent() <= call.bound_words ? std::string() : "more words than the bound";
  }
};

} // namespace

TEST_CASE("sum_of_largest keeps the invariants") {
  check_invariants<subject>();
}

TEST_CASE("sum_of_largest refuses bad accumulators") {
  check_bad_accumulators<subject>();
}

TEST_CASE("sum_of_largest goes on from a saved state") {
  check_continuation<subject>();
}
