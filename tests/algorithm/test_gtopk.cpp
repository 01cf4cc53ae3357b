// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/suite.hpp"
#include "algorithm/sums_of_selections.hpp"

#include <oktopk/algorithm/gtopk.hpp>

using namespace oktopk_tests;

namespace {

template <bool ReturnDropped>
struct gtopk_subject : subject_of<> {
  template <class Comm>
  using algorithm = oktopk::gtopk<execution, Comm>;

  static typename algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .return_dropped = ReturnDropped};
  }

  /// The tree, node by node: in each round the ranks that are left take the sums of their neighbours.
  static std::string reference_fault(run_of<gtopk_subject> const& run, shape what) {
    for (std::size_t i = 0; i < run[0].size(); ++i) {
      auto nodes = top_of_each<gtopk_subject>(run, i, what.k);
      for (std::size_t distance = 1; distance < nodes.size(); distance *= 2) {
        for (std::size_t rank = 0; rank + distance < nodes.size(); rank += 2 * distance) {
          auto const sums = sum_by_regions<float>({nodes[rank], nodes[rank + distance]}, {0, what.length, what.length});
          nodes[rank] = top(sums, what.k);
        }
      }
      if (auto const fault = update_fault(run[0][i], nodes[0], i); !fault.empty()) {
        return fault;
      }
    }
    return {};
  }
};

} // namespace

TEST_CASE("gtopk passes the suite of algorithms") {
  check_algorithm<gtopk_subject<true>>();
}

TEST_CASE("gtopk as published gives the same updates, and loses what it drops") {
  shape const what{230, 23, 6};
  for (int const ranks : rank_counts) {
    CAPTURE(ranks);
    auto const all = run<gtopk_subject<false>>(ranks, what, whole_numbers{1, 3});
    CHECK(agreement_fault(all) == "");
    CHECK(gtopk_subject<false>::reference_fault(all, what) == "");
    CHECK((conservation_fault(all, true) == "") == (ranks < 3)); // with two ranks all branches meet in the root
  }
}
