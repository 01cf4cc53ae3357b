// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"
#include "fuzz/subjects.hpp"

namespace oktopk_fuzz {

std::vector<subject<double>> ok_topk_of_doubles() {
  using namespace oktopk;
  using entry = coo<double, std::int64_t>;
  return {
      ok_topk_subject<entry, exact, exact, evened>("f64_i64.exact.exact.evened"),
      ok_topk_subject<entry, gaussian, exact, uniform>("f64_i64.gaussian.exact.uniform"),
      ok_topk_subject<entry, reused_threshold, gathered_threshold, oktopk::balanced>(
          "f64_i64.reused.gathered.balanced"),
      ok_topk_subject<entry, unguarded_threshold, gathered_threshold, oktopk::balanced, oktopk::paper_policies::gather>(
          "f64_i64.paper"),
  };
}

} // namespace oktopk_fuzz
