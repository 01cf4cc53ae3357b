// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"
#include "algorithm/sums_of_selections.hpp"

#include <oktopk/algorithm/topk_a.hpp>

using namespace oktopk_tests;

namespace {

struct topk_a_subject : subject_of<> {
  template <class Comm>
  using algorithm = oktopk::topk_a<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }

  static std::string reference_fault(run_of<topk_a_subject> const& run, shape what) {
    return top_sums_fault<topk_a_subject>(run, what);
  }
};

struct gaussian_subject : subject_of<> {
  template <class Comm>
  using algorithm = oktopk::gaussian_k<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }

  static std::string reference_fault(run_of<gaussian_subject> const& run, shape what) {
    return sums_fault<gaussian_subject>(run, what);
  }
};

} // namespace

TEST_CASE("topk_a passes the suite of algorithms") {
  check_algorithm<topk_a_subject>();
}

TEST_CASE("gaussian_k keeps the invariants") {
  check_invariants<gaussian_subject>();
}

TEST_CASE("gaussian_k refuses bad accumulators") {
  check_bad_accumulators<gaussian_subject>();
}
