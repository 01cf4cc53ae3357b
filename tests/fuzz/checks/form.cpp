// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace oktopk_fuzz {

namespace {

bool ascending_below(std::vector<std::int64_t> const& indices, std::int64_t length) {
  for (std::size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= length || (i > 0 && indices[i] <= indices[i - 1])) {
      return false;
    }
  }
  return true;
}

template <class Value>
std::string wrong_form(seen_call<Value> const& seen, call_record<Value> const& mine) {
  if (mine.input_changed) {
    return "the input was changed";
  }
  if (mine.update.indices.size() != mine.update.values.size()) {
    return "not as many values as indices";
  }
  if (!ascending_below(mine.update.indices, seen.length())) {
    return "the indices are not ascending in [0, length)";
  }
  if (!ascending_below(mine.contributed, seen.length())) {
    return "what contributed is not ascending in [0, length)";
  }
  if (!ascending_below(mine.returned.indices, seen.length())) {
    return "what is returned is not ascending in [0, length)";
  }
  for (auto const* each : {&mine.update, &mine.returned}) {
    for (std::size_t i = 0; i < each->size(); ++i) {
      if (!std::isfinite(each->values[i])) {
        return std::string(each == &mine.update ? "the update" : "what is returned") + " is not finite at index " +
               std::to_string(each->indices[i]);
      }
    }
  }
  if (mine.statistics.global_selected != static_cast<std::int64_t>(mine.update.size())) {
    return "last_call() tells another number of entries than the update has";
  }
  if (mine.statistics.local_selected < static_cast<std::int64_t>(mine.contributed.size()) ||
      mine.statistics.local_selected > seen.length()) {
    return "last_call() tells an impossible number of selected entries";
  }
  auto const& b = mine.after.boundaries;
  if (mine.after.has_boundaries && (b.size() != seen.ranks.size() + 1 || b.front() != 0 || b.back() != seen.length() ||
                                    !std::is_sorted(b.begin(), b.end()))) {
    return "the boundaries do not ascend from 0 to the length";
  }
  bool const moved_on = mine.before.iteration < std::numeric_limits<std::int64_t>::max() &&
                        mine.after.iteration == mine.before.iteration + 1;
  return moved_on ? ""
                  : "the iteration is " + std::to_string(mine.after.iteration) + " after " +
                        std::to_string(mine.before.iteration);
}

template <class Value>
std::string unlike(call_record<Value> const& a, call_record<Value> const& b) {
  if (a.update.indices != b.update.indices) {
    return "other indices";
  }
  if (!same_bits(a.update.values, b.update.values)) {
    return "other values";
  }
  if (a.after.boundaries != b.after.boundaries) {
    return "other boundaries";
  }
  if (!difference(a.after.global, b.after.global).empty() || a.after.iteration != b.after.iteration) {
    return "another global threshold or iteration";
  }
  auto const& s = a.statistics;
  auto const& t = b.statistics;
  if (s.global_selected != t.global_selected || s.global_reevaluated != t.global_reevaluated ||
      s.repartitioned != t.repartitioned || s.balanced != t.balanced) {
    return "other statistics";
  }
  return {};
}

// Regions are decided when there are none and every tau calls, and stay in between.
template <class Value>
std::string wrong_regions(seen_call<Value> const& seen) {
  auto const& mine = seen.ranks[0];
  if (!mine.after.has_boundaries) {
    return {};
  }
  bool const due =
      mine.before.boundaries.empty() ||
      (seen.about.uniform_regions ? mine.before.iteration == 0 : mine.before.iteration % seen.what.how.tau == 0);
  if (mine.statistics.repartitioned != due) {
    return due ? "the regions were not decided though they were due" : "the regions were decided before they were due";
  }
  return due || mine.before.boundaries == mine.after.boundaries ? "" : "the boundaries moved before they were due";
}

} // namespace

template <class Value>
verdict check_form(seen_call<Value> const& seen) {
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    if (auto const text = wrong_form(seen, seen.ranks[rank]); !text.empty()) {
      return finding{"form", "rank " + std::to_string(rank) + ": " + text};
    }
    if (auto const text = unlike(seen.ranks[0], seen.ranks[rank]); !text.empty()) {
      return finding{"same_everywhere", "rank " + std::to_string(rank) + " has " + text + " than rank 0"};
    }
  }
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    if (auto const why = impossible(seen.about, seen.what, seen.ranks[rank].after); !why.empty()) {
      return finding{"impossible_state", "rank " + std::to_string(rank) + ": the call left a state with " + why};
    }
  }
  if (auto const text = wrong_regions(seen); !text.empty()) {
    return finding{"regions", text};
  }
  return {};
}

template verdict check_form(seen_call<float> const&);
template verdict check_form(seen_call<double> const&);

} // namespace oktopk_fuzz
