// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/record.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

// What must hold after every call. Each check gives the first thing that is wrong, or nothing.
namespace oktopk_tests {

inline std::string at(std::size_t rank, std::size_t iteration) {
  return "rank " + std::to_string(rank) + ", iteration " + std::to_string(iteration) + ": ";
}

/// The update and what contributed to it have the form that `sparse_update` promises.
template <class Record>
std::string form_fault(Record const& call) {
  auto const length = static_cast<std::int64_t>(call.accumulator.size());
  if (call.indices.size() != call.values.size()) {
    return "as many values as indices are expected";
  }
  for (auto const* const indices : {&call.indices, &call.contributed}) {
    for (std::size_t i = 0; i < indices->size(); ++i) {
      auto const index = (*indices)[i];
      if (index < 0 || index >= length || (i > 0 && index <= (*indices)[i - 1])) {
        return std::string(indices == &call.indices ? "the indices are" : "what contributed is") +
               " not ascending in [0, length) at " + std::to_string(index);
      }
    }
  }
  for (std::size_t i = 0; i < call.indices.size(); ++i) {
    if (!std::isfinite(call.values[i])) {
      return "the value at index " + std::to_string(call.indices[i]) + " is not finite";
    }
  }
  if (call.statistics.global_selected != static_cast<std::int64_t>(call.indices.size())) {
    return "last_call() has another number of selected entries than the update";
  }
  if (call.statistics.local_selected < static_cast<std::int64_t>(call.contributed.size())) {
    return "more contributed than was selected";
  }
  if (!call.boundaries.empty() && (call.boundaries.front() != 0 || call.boundaries.back() != length ||
                                   !std::is_sorted(call.boundaries.begin(), call.boundaries.end()))) {
    return "the boundaries do not ascend from 0 to the length";
  }
  return {};
}

/// Conservation: the residuals of all ranks and the update together are the sum of the accumulators. Exactly so where
/// `exact`; else up to the rounding of sums in the value type. Where messages round values, what they made of them
/// counts as well: a small value may have become a large one.
template <class Run>
std::string conservation_fault(Run const& run, bool exact, bool rounds = false) {
  std::size_t const iterations = run.front().size();
  for (std::size_t iteration = 0; iteration < iterations; ++iteration) {
    auto const& first = run.front()[iteration];
    using value_type = typename std::decay_t<decltype(first.values)>::value_type;
    std::vector<double> put_in(first.accumulator.size(), 0);
    std::vector<double> size(first.accumulator.size(), 0);
    std::vector<double> came_out(first.accumulator.size(), 0);
    for (auto const& rank : run) {
      for (std::size_t i = 0; i < put_in.size(); ++i) {
        put_in[i] += static_cast<double>(rank[iteration].accumulator[i]);
        size[i] += std::fabs(static_cast<double>(rank[iteration].accumulator[i]));
        came_out[i] += static_cast<double>(rank[iteration].residual[i]);
        size[i] += rounds ? std::fabs(static_cast<double>(rank[iteration].residual[i])) : 0;
      }
    }
    for (std::size_t i = 0; i < first.indices.size(); ++i) {
      came_out[static_cast<std::size_t>(first.indices[i])] += static_cast<double>(first.values[i]);
      size[static_cast<std::size_t>(first.indices[i])] += rounds ? std::fabs(static_cast<double>(first.values[i])) : 0;
    }
    double const tolerance =
        exact ? 0
              : 2 * static_cast<double>(run.size()) * static_cast<double>(std::numeric_limits<value_type>::epsilon());
    for (std::size_t i = 0; i < put_in.size(); ++i) {
      if (!(std::fabs(put_in[i] - came_out[i]) <= tolerance * size[i])) {
        return "iteration " + std::to_string(iteration) + ", index " + std::to_string(i) + ": " +
               std::to_string(put_in[i]) + " was put in, " + std::to_string(came_out[i]) + " came out";
      }
    }
  }
  return {};
}

/// Two calls that must have given the same to the bit: results, thresholds and boundaries.
template <class Record>
std::string shared_difference(Record const& a, Record const& b) {
  if (a.indices != b.indices) {
    return "other indices";
  }
  if (bits(a.values) != bits(b.values)) {
    return "other values";
  }
  if (a.boundaries != b.boundaries) {
    return "other boundaries";
  }
  if (bits(a.global_threshold) != bits(b.global_threshold)) {
    return "another global threshold";
  }
  if (a.statistics.global_selected != b.statistics.global_selected ||
      a.statistics.global_reevaluated != b.statistics.global_reevaluated ||
      a.statistics.repartitioned != b.statistics.repartitioned || a.statistics.balanced != b.statistics.balanced) {
    return "other statistics";
  }
  return {};
}

/// Two calls of the same rank that must have gone the same way to the bit.
template <class Record>
std::string difference(Record const& a, Record const& b) {
  if (std::string const shared = shared_difference(a, b); !shared.empty()) {
    return shared;
  }
  if (a.contributed != b.contributed || bits(a.residual) != bits(b.residual)) {
    return "another residual";
  }
  if (bits(a.local_threshold) != bits(b.local_threshold)) {
    return "another local threshold";
  }
  if (a.statistics.local_selected != b.statistics.local_selected ||
      a.statistics.local_reevaluated != b.statistics.local_reevaluated) {
    return "other local statistics";
  }
  if (a.total().bytes_sent != b.total().bytes_sent || a.total().messages_sent != b.total().messages_sent) {
    return "other traffic";
  }
  return {};
}

/// All ranks have the same, in every iteration.
template <class Run>
std::string agreement_fault(Run const& run) {
  for (std::size_t rank = 1; rank < run.size(); ++rank) {
    for (std::size_t iteration = 0; iteration < run[rank].size(); ++iteration) {
      std::string const fault = shared_difference(run[0][iteration], run[rank][iteration]);
      if (!fault.empty()) {
        return at(rank, iteration) + fault + " than rank 0";
      }
    }
  }
  return {};
}

/// Two runs went the same way.
template <class Run>
std::string repetition_fault(Run const& once, Run const& again) {
  for (std::size_t rank = 0; rank < once.size(); ++rank) {
    for (std::size_t iteration = 0; iteration < once[rank].size(); ++iteration) {
      std::string const fault = difference(once[rank][iteration], again[rank][iteration]);
      if (!fault.empty()) {
        return at(rank, iteration) + fault + " than in the run before";
      }
    }
  }
  return {};
}

/// Two runs had the same results, whatever was sent for them.
template <class Run>
std::string results_fault(Run once, Run again) {
  for (Run* const all : {&once, &again}) {
    for (auto& rank : *all) {
      for (auto& call : rank) {
        call.traffic = {};
      }
    }
  }
  return repetition_fault(once, again);
}

/// All that every subject promises of a run: the first thing that is wrong.
template <class Subject>
std::string run_fault(run_of<Subject> const& run, shape what, bool exact) {
  for (std::size_t rank = 0; rank < run.size(); ++rank) {
    for (std::size_t iteration = 0; iteration < run[rank].size(); ++iteration) {
      auto const& call = run[rank][iteration];
      std::string fault = form_fault(call);
      if constexpr (requires { Subject::volume_fault(call, 1, what); }) {
        fault = fault.empty() ? Subject::volume_fault(call, static_cast<int>(run.size()), what) : fault;
      }
      if (!fault.empty()) {
        return at(rank, iteration) + fault;
      }
    }
  }
  std::string fault = agreement_fault(run);
  if constexpr (requires { Subject::rounds; }) {
    fault = fault.empty() ? conservation_fault(run, exact && !Subject::rounds, Subject::rounds) : fault;
  } else {
    fault = fault.empty() ? conservation_fault(run, exact) : fault;
  }
  if constexpr (requires { Subject::reference_fault(run, what); }) {
    fault = fault.empty() ? Subject::reference_fault(run, what) : fault;
  }
  return fault;
}

} // namespace oktopk_tests
