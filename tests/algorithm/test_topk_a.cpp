// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"
#include "algorithm/sums_of_selections.hpp"

#include <oktopk/algorithm/topk_a.hpp>

using namespace oktopk_tests;

namespace {

struct subject : subject_of<> {
  template <class Comm>
  using algorithm = oktopk::topk_a<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }

  /// The exact sum of all that the ranks selected, in the order of the ranks.
  static std::string reference_fault(run_of<subject> const& run, shape what) {
    for (std::size_t i = 0; i < run[0].size(); ++i) {
      auto const parts = top_of_each<subject>(run, i, what.k);
      if (contributions<subject>(run, i) != parts) {
        return "not the k largest contributed";
      }
      std::vector<sparse_vector<float>> const in_order(parts.rbegin(),
                                                       parts.rend()); // the owner's first, then downwards
      std::vector<std::int64_t> boundaries(run.size() + 1, what.length);
      std::fill(boundaries.begin(), boundaries.end() - 1, 0);
      if (auto const fault = update_fault(run[0][i], sum_by_regions(in_order, boundaries), i); !fault.empty()) {
        return fault;
      }
    }
    return {};
  }
};

struct gaussian_subject : subject_of<> {
  template <class Comm>
  using algorithm = oktopk::gaussian_k<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k};
  }

  /// The exact sum of whatever was selected.
  static std::string reference_fault(run_of<gaussian_subject> const& run, shape what) {
    for (std::size_t i = 0; i < run[0].size(); ++i) {
      auto const parts = contributions<gaussian_subject>(run, i);
      std::vector<sparse_vector<float>> const in_order(parts.rbegin(), parts.rend());
      std::vector<std::int64_t> boundaries(run.size() + 1, what.length);
      std::fill(boundaries.begin(), boundaries.end() - 1, 0);
      if (auto const fault = update_fault(run[0][i], sum_by_regions(in_order, boundaries), i); !fault.empty()) {
        return fault;
      }
    }
    return {};
  }
};

} // namespace

TEST_CASE("topk_a passes the suite of algorithms") {
  check_algorithm<subject>();
}

TEST_CASE("gaussian_k keeps the invariants") {
  check_invariants<gaussian_subject>();
}

TEST_CASE("gaussian_k refuses bad accumulators") {
  check_bad_accumulators<gaussian_subject>();
}
