// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"

namespace oktopk_fuzz {

std::vector<subject> ok_topk_of_floats() {
  using namespace oktopk;
  using entry = coo<float, std::int32_t>;
  using wide = coo<float, std::int64_t>;
  using mixed = coo_or_dense<float, std::int32_t>;
  return {
      ok_topk_subject<entry, exact, exact, evened>("f32_i32.exact.exact.evened"),
      ok_topk_subject<entry, exact, exact, oktopk::balanced>("f32_i32.exact.exact.balanced"),
      ok_topk_subject<entry, exact, exact, uniform>("f32_i32.exact.exact.uniform"),
      ok_topk_subject<entry, exact, exact, evened, oktopk::paper_policies::gather>(
          "f32_i32.exact.exact.evened.paper_gather"),
      ok_topk_subject<entry, exact, reused_threshold, uniform>("f32_i32.exact.reused.uniform"),
      ok_topk_subject<entry, exact, unguarded_threshold, oktopk::balanced>("f32_i32.exact.unguarded.balanced"),
      ok_topk_subject<entry, exact, gathered_threshold, evened>("f32_i32.exact.gathered.evened"),
      ok_topk_subject<entry, reused_threshold, reused_threshold, evened>("f32_i32.reused.reused.evened"),
      ok_topk_subject<entry, reused_threshold, exact, oktopk::balanced>("f32_i32.reused.exact.balanced"),
      ok_topk_subject<entry, unguarded_threshold, unguarded_threshold, uniform>("f32_i32.unguarded.unguarded.uniform"),
      ok_topk_subject<entry, unguarded_threshold, gathered_threshold, oktopk::balanced, oktopk::paper_policies::gather>(
          "f32_i32.paper"),
      ok_topk_subject<entry, gaussian, exact, evened>("f32_i32.gaussian.exact.evened"),
      ok_topk_subject<entry, gaussian, reused_threshold, uniform>("f32_i32.gaussian.reused.uniform"),
      ok_topk_subject<wide, exact, exact, evened>("f32_i64.exact.exact.evened"),
      ok_topk_subject<wide, reused_threshold, unguarded_threshold, uniform>("f32_i64.reused.unguarded.uniform"),
      ok_topk_subject<packed<float, std::int32_t>, exact, exact, evened>("f32_i32_packed.exact.exact.evened"),
      ok_topk_subject<mixed, exact, exact, evened>("f32_i32_or_dense.exact.exact.evened"),
      ok_topk_subject<mixed, reused_threshold, reused_threshold, uniform>("f32_i32_or_dense.reused.reused.uniform"),
  };
}

} // namespace oktopk_fuzz
