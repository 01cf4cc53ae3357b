// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "algorithm/ok_topk_subject.hpp"

#include <cstdlib>

using namespace oktopk_tests;

namespace {

struct subject : ok_topk_subject<subject> {
  static constexpr ok_topk_rules rules{rule::exact, rule::exact, false, 1, 0};
  template <class Comm>
  using algorithm =
      oktopk::ok_topk<execution, Comm, policies_of<oktopk::coo<>, oktopk::exact, oktopk::exact, oktopk::uniform>>;

  static algorithm<counting>::options options(std::int64_t length, std::int64_t k) {
    return {.length = length, .k = k, .schedule = {.bucket = 2}};
  }

  static std::string reference_fault(run_of<subject> const& run, shape what) {
    for (auto const& call : run[0]) {
      for (std::size_t r = 0; r < run.size(); ++r) {
        std::int64_t const width = call.boundaries.at(r + 1) - call.boundaries.at(r);
        if (std::abs(width * static_cast<std::int64_t>(run.size()) - what.length) >=
            static_cast<std::int64_t>(run.size())) {
          return "the regions are not of one width";
        }
      }
    }
    return ok_topk_subject::reference_fault(run, what);
  }
};

} // namespace

TEST_CASE("ok_topk with exact selectors and uniform regions passes the suite of algorithms") {
  check_algorithm<subject>();
}

TEST_CASE("ok_topk with exact selectors and uniform regions keeps its bound where selections are even") {
  check_bound<subject>();
}
