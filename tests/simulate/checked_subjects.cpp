// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/subject_of.hpp"
#include "simulate/scenario.hpp"

#ifdef OKTOPK_TESTS_WITH_XXHASH
#include <oktopk/algorithm/dense_family.hpp>
#include <oktopk/comm/checked.hpp>
#endif

namespace oktopk_simulate {

std::vector<oktopk_fuzz::subject> const& checked_subjects() {
#ifdef OKTOPK_TESTS_WITH_XXHASH
  using namespace oktopk;
  using oktopk_fuzz::family;
  using oktopk_fuzz::ok_topk_subject;
  using oktopk_fuzz::selecting_subject;
  using entry = coo<float, std::int32_t>;
  using mixed = coo_or_dense<float, std::int32_t>;
  using sent = balanced_allgatherv;
  using sealed = checked<in_process_communicator>;
  using ring = dense_ring<oktopk_fuzz::execution, counted<sealed>, float, std::int32_t>;
  static std::vector<oktopk_fuzz::subject> const all = {
      ok_topk_subject<entry, exact, exact, evened, sent, sealed>("f32_i32.exact.exact.evened"),
      ok_topk_subject<entry, reused_threshold, reused_threshold, evened, sent, sealed>("f32_i32.reused.reused.evened"),
      ok_topk_subject<entry, exact, exact, oktopk::balanced, sent, sealed>("f32_i32.exact.exact.balanced"),
      selecting_subject<topk_a, entry, exact, sealed>("topk_a.f32_i32.exact", family::topk_a),
      selecting_subject<topk_dsa, mixed, exact, sealed>("topk_dsa.f32_i32_or_dense.exact", family::topk_dsa),
      selecting_subject<gtopk, entry, exact, sealed>("gtopk.f32_i32.exact", family::gtopk),
      oktopk_fuzz::subject_of<ring, sealed>("dense.ring.f32", family::dense),
  };
#else
  static std::vector<oktopk_fuzz::subject> const all;
#endif
  return all;
}

} // namespace oktopk_simulate
