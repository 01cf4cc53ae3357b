// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"
#include "fuzz/subjects.hpp"

namespace oktopk_fuzz {

std::vector<subject<float>> baselines_of_floats() {
  using namespace oktopk;
  using entry = coo<float, std::int32_t>;
  using mixed = coo_or_dense<float, std::int32_t>;
  return {
      selecting_subject<topk_a, entry, exact>("topk_a.f32_i32.exact", family::topk_a),
      selecting_subject<topk_a, entry, reused_threshold>("topk_a.f32_i32.reused", family::topk_a),
      selecting_subject<topk_dsa, mixed, exact>("topk_dsa.f32_i32_or_dense.exact", family::topk_dsa),
      selecting_subject<topk_dsa, entry, reused_threshold>("topk_dsa.f32_i32.reused", family::topk_dsa),
      selecting_subject<gtopk, entry, exact>("gtopk.f32_i32.exact", family::gtopk),
      selecting_subject<gtopk, mixed, reused_threshold>("gtopk.f32_i32_or_dense.reused", family::gtopk),
      gaussian_subject<entry>("gaussian_k.f32_i32"),
  };
}

std::vector<subject<double>> baselines_of_doubles() {
  using namespace oktopk;
  using narrow = coo<double, std::int32_t>; // entries of 12 bytes
  using wide = coo<double, std::int64_t>;
  using mixed = coo_or_dense<double, std::int32_t>;
  return {
      selecting_subject<topk_a, narrow, exact>("topk_a.f64_i32.exact", family::topk_a),
      selecting_subject<topk_a, wide, unguarded_threshold>("topk_a.f64_i64.unguarded", family::topk_a),
      selecting_subject<topk_dsa, mixed, exact>("topk_dsa.f64_i32_or_dense.exact", family::topk_dsa),
      selecting_subject<gtopk, narrow, exact>("gtopk.f64_i32.exact", family::gtopk),
      selecting_subject<gtopk, wide, unguarded_threshold>("gtopk.f64_i64.unguarded", family::gtopk),
      gaussian_subject<wide>("gaussian_k.f64_i64"),
      gaussian_subject<narrow>("gaussian_k.f64_i32"),
  };
}

} // namespace oktopk_fuzz
