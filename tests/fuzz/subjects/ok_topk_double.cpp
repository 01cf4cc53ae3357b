// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"

namespace oktopk_fuzz {

std::vector<subject> ok_topk_of_doubles() {
  using namespace oktopk;
  using entry = coo<double, std::int64_t>;
  using narrow = coo<double, std::int32_t>; // entries of 12 bytes
  using mixed = coo_or_dense<double, std::int32_t>;
  using wide_mixed = coo_or_dense<double, std::int64_t>;
  return {
      ok_topk_subject<entry, exact, exact, evened>("f64_i64.exact.exact.evened"),
      ok_topk_subject<entry, gaussian, exact, uniform>("f64_i64.gaussian.exact.uniform"),
      ok_topk_subject<entry, reused_threshold, gathered_threshold, oktopk::balanced>(
          "f64_i64.reused.gathered.balanced"),
      ok_topk_subject<entry, unguarded_threshold, gathered_threshold, oktopk::balanced, oktopk::paper_policies::gather>(
          "f64_i64.paper"),
      ok_topk_subject<narrow, exact, exact, evened>("f64_i32.exact.exact.evened"),
      ok_topk_subject<narrow, unguarded_threshold, exact, oktopk::balanced>("f64_i32.unguarded.exact.balanced"),
      ok_topk_subject<narrow, reused_threshold, reused_threshold, uniform>("f64_i32.reused.reused.uniform"),
      ok_topk_subject<mixed, exact, unguarded_threshold, evened>("f64_i32_or_dense.exact.unguarded.evened"),
      ok_topk_subject<packed<double, std::int64_t>, exact, reused_threshold, uniform>(
          "f64_i64_packed.exact.reused.uniform"),
      ok_topk_subject<wide_mixed, exact, exact, oktopk::balanced>("f64_i64_or_dense.exact.exact.balanced"),
  };
}

} // namespace oktopk_fuzz
