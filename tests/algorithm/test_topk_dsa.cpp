// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"
#include "algorithm/sums_of_selections.hpp"

#include <oktopk/algorithm/topk_dsa.hpp>

using namespace oktopk_tests;

namespace {

struct topk_dsa_subject {
  using value_type = float;
  using index_type = std::int32_t;
  using communicator = counting;
  template <class Comm>
  using algorithm = oktopk::topk_dsa<execution, Comm>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .schedule = {.bucket = 2}};
  }

  /// Whatever the selections are: all of them in the first phase, and a dense region of every other rank in the second;
  /// a header a message and the sizes; regions and parts are whole words and pairs of words.
  static std::string volume_fault(record_of<topk_dsa_subject> const& call, int ranks, shape what) {
    double const others = ranks - 1;
    double const widest = static_cast<double>((what.length + ranks - 1) / ranks);
    double const most = 2 * static_cast<double>(what.k) + others * (widest + 1) + 4 * others;
    return call.total().words_sent() <= most ? std::string() : "more words than possible";
  }

  /// The exact sum of all that the ranks selected, region by region.
  static std::string reference_fault(run_of<topk_dsa_subject> const& run, shape what) {
    auto const ranks = static_cast<std::int64_t>(run.size());
    std::vector<std::int64_t> boundaries;
    for (std::int64_t r = 0; r <= ranks; ++r) {
      boundaries.push_back(what.length / ranks * r + std::min(r, what.length % ranks));
    }
    return top_sums_fault<topk_dsa_subject>(run, what, boundaries);
  }
};

} // namespace

TEST_CASE("topk_dsa passes the suite of algorithms") {
  check_algorithm<topk_dsa_subject>();
}

TEST_CASE("topk_dsa keeps its bound where selections are even") {
  check_bound<topk_dsa_subject>(0.01);
}
