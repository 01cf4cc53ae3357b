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

} // namespace

template <class Value>
std::string calls_differ_in(call_record<Value> const& a, call_record<Value> const& b) {
  if (!(a.said == b.said)) {
    return "another error: \"" + a.said.text + "\" and \"" + b.said.text + "\"";
  }
  if (!same(a.update, b.update)) {
    return "another update";
  }
  if (a.contributed != b.contributed || !same(a.returned, b.returned)) {
    return "other contributed or returned entries";
  }
  if (auto const text = difference(a.after, b.after); !text.empty()) {
    return "another state: " + text;
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
  return {};
}

template std::string calls_differ_in(call_record<float> const&, call_record<float> const&);
template std::string calls_differ_in(call_record<double> const&, call_record<double> const&);

} // namespace oktopk_fuzz
