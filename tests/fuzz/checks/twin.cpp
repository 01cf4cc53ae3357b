// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <string>

namespace oktopk_fuzz {

namespace {

bool same(oktopk::call_statistics const& a, oktopk::call_statistics const& b) {
  return a.local_selected == b.local_selected && a.local_reevaluated == b.local_reevaluated &&
         a.global_reevaluated == b.global_reevaluated && a.repartitioned == b.repartitioned && a.balanced == b.balanced;
}

} // namespace

template <class Value>
verdict check_twin(std::vector<call_record<Value>> const& ranks, std::vector<call_record<Value>> const& twins) {
  for (std::size_t rank = 0; rank < twins.size(); ++rank) {
    auto text = calls_differ_in(ranks[rank], twins[rank]);
    if (text.empty() && !same(ranks[rank].statistics, twins[rank].statistics)) {
      text = "other statistics";
    }
    if (!text.empty()) {
      return finding{"twin", "rank " + std::to_string(rank) + ": the twin made of a checkpoint has " + text};
    }
  }
  return {};
}

template verdict check_twin(std::vector<call_record<float>> const&, std::vector<call_record<float>> const&);
template verdict check_twin(std::vector<call_record<double>> const&, std::vector<call_record<double>> const&);

} // namespace oktopk_fuzz
