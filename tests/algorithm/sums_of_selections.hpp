// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"
#include "support/reference.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace oktopk_tests {

/// The k largest of every rank's accumulator in one iteration.
template <class Subject>
std::vector<sparse_vector<typename Subject::value_type>> top_of_each(run_of<Subject> const& run, std::size_t iteration,
                                                                     std::int64_t k) {
  std::vector<sparse_vector<typename Subject::value_type>> parts;
  for (auto const& rank : run) {
    parts.push_back(top(all_entries(rank[iteration].accumulator), k));
  }
  return parts;
}

/// What contributed, with its values: the selection of a scheme in which all that is selected contributes.
template <class Subject>
std::vector<sparse_vector<typename Subject::value_type>> contributions(run_of<Subject> const& run,
                                                                       std::size_t iteration) {
  std::vector<sparse_vector<typename Subject::value_type>> parts;
  for (auto const& rank : run) {
    parts.emplace_back();
    for (auto const index : rank[iteration].contributed) {
      parts.back().push_back(index, rank[iteration].accumulator[static_cast<std::size_t>(index)]);
    }
  }
  return parts;
}

/// The first difference between a call and the entries it should have given; an exact zero may have either sign.
template <class Record, class Value>
std::string update_fault(Record const& call, sparse_vector<Value> const& expected, std::size_t iteration) {
  std::vector<std::int64_t> const indices(call.indices.begin(), call.indices.end());
  if (indices != expected.indices) {
    return "iteration " + std::to_string(iteration) + ": " + std::to_string(indices.size()) + " indices instead of " +
           std::to_string(expected.indices.size()) + ", or others";
  }
  if (call.values != expected.values) {
    return "iteration " + std::to_string(iteration) + ": other values than the reference";
  }
  return {};
}

/// The sums of whatever every rank selected, region by region; where there are no boundaries, of all of it in the order
/// of the ranks. The first difference, or nothing.
template <class Subject>
std::string sums_fault(run_of<Subject> const& run, shape what, std::vector<std::int64_t> boundaries = {}) {
  bool const in_order = boundaries.empty();
  if (in_order) { // all belongs to the last, who adds its own part first and then downwards
    boundaries.assign(run.size(), 0);
    boundaries.push_back(what.length);
  }
  for (std::size_t i = 0; i < run[0].size(); ++i) {
    auto parts = contributions<Subject>(run, i);
    if (in_order) {
      std::reverse(parts.begin(), parts.end());
    }
    if (auto const fault = update_fault(run[0][i], sum_by_regions(parts, boundaries), i); !fault.empty()) {
      return fault;
    }
  }
  return {};
}

/// The same where the k largest are selected.
template <class Subject>
std::string top_sums_fault(run_of<Subject> const& run, shape what, std::vector<std::int64_t> const& boundaries = {}) {
  for (std::size_t i = 0; i < run[0].size(); ++i) {
    if (contributions<Subject>(run, i) != top_of_each<Subject>(run, i, what.k)) {
      return "not the k largest contributed";
    }
  }
  return sums_fault<Subject>(run, what, boundaries);
}

} // namespace oktopk_tests
