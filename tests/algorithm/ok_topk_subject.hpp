// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/ok_topk_reference.hpp"
#include "algorithm/ok_topk_volume.hpp"
#include "algorithm/suite.hpp"
#include "support/policies.hpp"

#include <oktopk/algorithm/ok_topk.hpp>

namespace oktopk_tests {

/// A base of subjects of ok_topk, which say by `Self::rules` how they are to choose and to partition.
template <class Self, class Value = float, class Index = std::int32_t>
struct ok_topk_subject : subject_of<Value, Index> {
  static constexpr volume_terms terms{};

  static std::string volume_fault(call_record<Value, Index> const& call, int ranks, shape what) {
    return ok_topk_volume_fault<ok_topk_subject>(call, ranks, what, Self::terms);
  }
  static std::string reference_fault(run_of<ok_topk_subject> const& run, shape what) {
    return ok_topk_reference_fault<ok_topk_subject>(run, what, Self::rules);
  }
};

} // namespace oktopk_tests
