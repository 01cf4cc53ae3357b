// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/sabotage.hpp"

#include <bit>
#include <cstdlib>
#include <string>

namespace oktopk_fuzz {

namespace {

template <class Value>
void flip_last_bit(Value& x) {
  x = std::bit_cast<Value>(static_cast<pattern_of<Value>>(std::bit_cast<pattern_of<Value>>(x) ^ 1));
}

} // namespace

template <class Value>
bool put_in(sabotage what, int rank, int ranks, bool of_twin, call_record<Value>& record) {
  bool const threw = record.said.code != oktopk::fault::none;
  auto& values = record.update.values;
  switch (what) {
  case sabotage::drops_entry:
    if (of_twin || values.empty()) {
      return false;
    }
    record.update.indices.pop_back();
    values.pop_back();
    record.statistics.global_selected -= 1;
    return true;
  case sabotage::flips_bit:
  case sabotage::differs:
    if (of_twin || values.empty() || (what == sabotage::differs && rank != ranks - 1)) {
      return false;
    }
    flip_last_bit(values.front());
    return what == sabotage::flips_bit || ranks > 1;
  case sabotage::forgets:
    if (of_twin || record.contributed.empty()) {
      return false;
    }
    record.contributed.pop_back();
    return true;
  case sabotage::sends_more: record.traffic[0].bytes_sent += of_twin ? 0 : 4'000'000; return !of_twin && !threw;
  case sabotage::is_silent: record.said = {}; return threw;
  case sabotage::says_other:
    if (!threw || rank != ranks - 1) {
      return false;
    }
    record.said.text += " ";
    return ranks > 1;
  case sabotage::blames_other:
    if (auto const at = record.said.text.find("rank "); threw && at != std::string::npos) {
      record.said.text.replace(at, record.said.text.find(':', at) - at, "rank " + std::to_string(ranks));
      return true;
    }
    return false;
  case sabotage::moves: record.after.iteration += threw ? 1 : 0; return threw;
  case sabotage::twin_differs:
    if (!of_twin || values.empty()) {
      return false;
    }
    flip_last_bit(values.back());
    return true;
  case sabotage::crashes: std::abort();
  case sabotage::hangs:
    for (bool volatile forever = true; forever;) {
    }
    return true;
  case sabotage::none:
  case sabotage::takes_any_state: break;
  }
  return false;
}

template bool put_in(sabotage, int, int, bool, call_record<float>&);
template bool put_in(sabotage, int, int, bool, call_record<double>&);

} // namespace oktopk_fuzz
