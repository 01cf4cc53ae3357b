// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Other policies than the usual ones, in the combinations that promise different things.

#include "algorithm/ok_topk_subject.hpp"

#include <oktopk/partition/balanced.hpp>
#include <oktopk/partition/uniform.hpp>
#include <oktopk/select/chunked.hpp>
#include <oktopk/select/reused_threshold.hpp>

#include <cstdlib>

using namespace oktopk_tests;

namespace {

using oktopk::coo;
using oktopk::exact;

struct of_uniform_regions : ok_topk_subject<of_uniform_regions, policies_of<coo<>, exact, exact, oktopk::uniform>> {
  static constexpr ok_topk_rules rules{rule::exact, rule::exact, false, 1, 0};

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .schedule = {.bucket = 2}};
  }

  static std::string reference_fault(run_of<of_uniform_regions> const& run, shape what) {
    auto const ranks = static_cast<std::int64_t>(run.size());
    for (auto const& call : run[0]) {
      for (std::size_t r = 0; r < run.size(); ++r) {
        if (std::abs((call.boundaries.at(r + 1) - call.boundaries.at(r)) * ranks - what.length) >= ranks) {
          return "the regions are not of one width";
        }
      }
    }
    return ok_topk_subject::reference_fault(run, what);
  }
};

struct of_balanced_regions : ok_topk_subject<of_balanced_regions, policies_of<coo<>, exact, exact, oktopk::balanced>> {
  static constexpr ok_topk_rules rules{rule::exact, rule::exact, false, 1, 3};

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .partition = {.tau = 3}, .schedule = {.bucket = 1}};
  }
};

struct of_double_and_wide_indices
    : ok_topk_subject<of_double_and_wide_indices,
                      policies_of<coo<double, std::int64_t>, oktopk::reused_threshold, oktopk::reused_threshold>> {
  static constexpr ok_topk_rules rules{rule::guarded, rule::guarded, false, 3, 4};

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length,
            .k = k,
            .local_select = {.tau_prime = 3},
            .global_select = {.tau_prime = 3},
            .partition = {.tau = 4},
            .schedule = {.bucket = 100}};
  }
};

struct of_chunks : ok_topk_subject<of_chunks, policies_of<coo<>, oktopk::chunked, exact>> {
  static constexpr ok_topk_rules rules{rule::chunked, rule::exact, false, 1, 2};

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .local_select = {.chunk = 64}, .partition = {.tau = 2}};
  }
};

/// What no other subject has: entries of 12 bytes, a local selector without a capacity beside an exact global one.
struct of_mixed_selectors
    : ok_topk_subject<of_mixed_selectors,
                      policies_of<coo<double, std::int32_t>, oktopk::unguarded_threshold, exact, oktopk::balanced>> {
  static constexpr volume_terms terms{.sizes_announced = true};
  static constexpr ok_topk_rules rules{rule::unguarded, rule::exact, false, 3, 2};

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {
        .length = length, .k = k, .local_select = {.tau_prime = 3}, .partition = {.tau = 2}, .schedule = {.bucket = 3}};
  }
};

} // namespace

TEMPLATE_TEST_CASE("ok_topk with other policies passes the suite of algorithms", "", of_uniform_regions,
                   of_balanced_regions, of_double_and_wide_indices, of_chunks, of_mixed_selectors) {
  check_algorithm<TestType>();
}

TEMPLATE_TEST_CASE("ok_topk with other policies keeps its bound where selections are even", "", of_uniform_regions,
                   of_balanced_regions, of_double_and_wide_indices) {
  check_bound<TestType>();
}
