// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <string>

namespace oktopk_fuzz {

namespace {

template <class Value>
bool same(entries<Value> const& a, entries<Value> const& b) {
  return a.indices == b.indices && same_bits(a.values, b.values);
}

template <class Value>
std::string unlike(call_record<Value> const& a, call_record<Value> const& b) {
  if (b.said.code != oktopk::fault::none) {
    return "throws: " + b.said.text;
  }
  if (!same(a.update, b.update)) {
    return "another update";
  }
  if (a.contributed != b.contributed || !same(a.returned, b.returned)) {
    return "something else that contributed or is returned";
  }
  if (auto const text = difference(a.after, b.after); !text.empty()) {
    return "another state afterwards: " + text;
  }
  if (!same_bits(a.weights_after, b.weights_after)) {
    return "other weights";
  }
  for (std::size_t p = 0; p < a.traffic.size(); ++p) {
    if (a.traffic[p].bytes_sent != b.traffic[p].bytes_sent ||
        a.traffic[p].messages_sent != b.traffic[p].messages_sent) {
      return "other messages in phase " + std::string(oktopk::name(static_cast<oktopk::phase>(p)));
    }
  }
  auto const& s = a.statistics;
  auto const& t = b.statistics;
  bool const same_statistics = s.local_selected == t.local_selected && s.local_reevaluated == t.local_reevaluated &&
                               s.global_reevaluated == t.global_reevaluated && s.repartitioned == t.repartitioned &&
                               s.balanced == t.balanced;
  return same_statistics ? "" : "other statistics";
}

} // namespace

template <class Value>
verdict check_twin(std::vector<call_record<Value>> const& ranks, std::vector<call_record<Value>> const& twins) {
  for (std::size_t rank = 0; rank < twins.size(); ++rank) {
    if (auto const text = unlike(ranks[rank], twins[rank]); !text.empty()) {
      return finding{"twin", "rank " + std::to_string(rank) + ": the twin made of a checkpoint has " + text};
    }
  }
  return {};
}

template verdict check_twin(std::vector<call_record<float>> const&, std::vector<call_record<float>> const&);
template verdict check_twin(std::vector<call_record<double>> const&, std::vector<call_record<double>> const&);

} // namespace oktopk_fuzz
