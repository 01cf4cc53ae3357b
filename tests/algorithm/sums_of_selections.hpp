// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"
#include "support/reference.hpp"

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

} // namespace oktopk_tests
