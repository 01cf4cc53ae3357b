// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"
#include "fuzz/subjects.hpp"

namespace oktopk_fuzz {

std::vector<subject<float>> ok_topk_of_floats_other_formats() {
  using namespace oktopk;
  using wide = coo<float, std::int64_t>;
  using mixed = coo_or_dense<float, std::int32_t>;
  return {
      ok_topk_subject<wide, exact, exact, evened>("f32_i64.exact.exact.evened"),
      ok_topk_subject<wide, reused_threshold, unguarded_threshold, uniform>("f32_i64.reused.unguarded.uniform"),
      ok_topk_subject<packed<float, std::int32_t>, exact, exact, evened>("f32_i32_packed.exact.exact.evened"),
      ok_topk_subject<mixed, exact, exact, evened>("f32_i32_or_dense.exact.exact.evened"),
      ok_topk_subject<mixed, reused_threshold, reused_threshold, uniform>("f32_i32_or_dense.reused.reused.uniform"),
  };
}

} // namespace oktopk_fuzz
