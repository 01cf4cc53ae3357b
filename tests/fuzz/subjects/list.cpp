// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"

#include <algorithm>

namespace oktopk_fuzz {

namespace {

template <class Format>
subject gaussian_subject(std::string name) {
  subject made = subject_of<oktopk::gaussian_k<execution, communicator, Format>>(std::move(name), family::topk_a);
  made.about.local = choice::gaussian;
  return made;
}

std::vector<subject> baselines() {
  using namespace oktopk;
  using single = coo<float, std::int32_t>;
  using mixed = coo_or_dense<float, std::int32_t>;
  using narrow = coo<double, std::int32_t>; // entries of 12 bytes
  using wide = coo<double, std::int64_t>;
  using mixed_wide = coo_or_dense<double, std::int32_t>;
  return {
      selecting_subject<topk_a, single, exact>("topk_a.f32_i32.exact", family::topk_a),
      selecting_subject<topk_a, single, reused_threshold>("topk_a.f32_i32.reused", family::topk_a),
      selecting_subject<topk_dsa, mixed, exact>("topk_dsa.f32_i32_or_dense.exact", family::topk_dsa),
      selecting_subject<topk_dsa, single, reused_threshold>("topk_dsa.f32_i32.reused", family::topk_dsa),
      selecting_subject<gtopk, single, exact>("gtopk.f32_i32.exact", family::gtopk),
      selecting_subject<gtopk, mixed, reused_threshold>("gtopk.f32_i32_or_dense.reused", family::gtopk),
      gaussian_subject<single>("gaussian_k.f32_i32"),
      selecting_subject<topk_a, narrow, exact>("topk_a.f64_i32.exact", family::topk_a),
      selecting_subject<topk_a, wide, unguarded_threshold>("topk_a.f64_i64.unguarded", family::topk_a),
      selecting_subject<topk_dsa, mixed_wide, exact>("topk_dsa.f64_i32_or_dense.exact", family::topk_dsa),
      selecting_subject<gtopk, narrow, exact>("gtopk.f64_i32.exact", family::gtopk),
      selecting_subject<gtopk, wide, unguarded_threshold>("gtopk.f64_i64.unguarded", family::gtopk),
      gaussian_subject<wide>("gaussian_k.f64_i64"),
      gaussian_subject<narrow>("gaussian_k.f64_i32"),
  };
}

} // namespace

std::vector<subject> const& subjects() {
  static std::vector<subject> const all = [] {
    std::vector<subject> joined;
    for (auto const& part : {ok_topk_of_floats(), ok_topk_of_doubles(), baselines(), dense_allreduces()}) {
      joined.insert(joined.end(), part.begin(), part.end());
    }
    // Seeds of tests/simulate go by the order.
    std::stable_partition(joined.begin(), joined.end(),
                          [](subject const& each) { return each.about.values.bytes == 4; });
    return joined;
  }();
  return all;
}

std::vector<subject const*> chosen_of(std::vector<subject> const& all, std::string const& name) {
  std::vector<subject const*> chosen;
  for (subject const& each : all) {
    if (each.about.name == name) {
      return {&each};
    }
    if (each.about.name.find(name) != std::string::npos) {
      chosen.push_back(&each);
    }
  }
  return chosen;
}

} // namespace oktopk_fuzz
