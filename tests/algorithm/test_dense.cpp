// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"
#include "support/reference.hpp"

#include <oktopk/algorithm/dense.hpp>

using namespace oktopk_tests;

namespace {

struct subject {
  using value_type = float;
  using index_type = std::int32_t;
  template <class Comm>
  using algorithm = oktopk::dense<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t) { return {.length = length}; }

  /// Not one byte beside the allreduce itself, where there is anything to sum.
  static std::string volume_fault(record_of<subject> const& call, int ranks, shape what) {
    if (what.length == 0) {
      return call.of(oktopk::phase::reduce).bytes_sent == 0 ? std::string() : "words of nothing are sent";
    }
    auto const reduce = call.of(oktopk::phase::reduce);
    bool const only = call.total().bytes_sent == reduce.bytes_sent;
    return only && reduce.words_sent() <= call.bound_words && (ranks > 1 || reduce.bytes_sent == 0)
               ? std::string()
               : "more is sent than the allreduce itself";
  }

  /// Every index, with the sum in the order of the ranks.
  static std::string reference_fault(run_of<subject> const& run, shape what) {
    for (std::size_t iteration = 0; iteration < run[0].size(); ++iteration) {
      std::vector<float> sums(static_cast<std::size_t>(what.length));
      for (auto const& rank : run) {
        for (std::size_t i = 0; i < sums.size(); ++i) {
          sums[i] = &rank == &run[0] ? rank[iteration].accumulator[i] : sums[i] + rank[iteration].accumulator[i];
        }
      }
      for (auto const& rank : run) {
        if (bits(rank[iteration].values) != bits(sums) || rank[iteration].contributed.size() != sums.size() ||
            rank[iteration].indices != rank[iteration].contributed) {
          return "iteration " + std::to_string(iteration) + ": not the sums of everything";
        }
      }
    }
    return {};
  }
};

} // namespace

TEST_CASE("dense keeps the invariants") {
  check_invariants<subject>();
}

TEST_CASE("dense refuses bad accumulators") {
  check_bad_accumulators<subject>();
}

TEST_CASE("dense goes on from a saved state") {
  check_continuation<subject>();
}

TEST_CASE("dense sends its bound") {
  check_bound<subject>();
}
