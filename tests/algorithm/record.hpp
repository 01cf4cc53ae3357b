// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/algorithm/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

// One call of an algorithm of any type, written down.
namespace oktopk_tests {

/// Everything about one call on one rank, on the host.
template <class Value, class Index>
struct observed_call {
  std::vector<Value> accumulator;
  std::vector<Index> indices;
  std::vector<Value> values;
  std::vector<Index> contributed;
  std::vector<Value> residual; ///< what is left for the next iteration
  oktopk::call_statistics statistics;
  oktopk::traffic total;
  double bound_words = 0;
};

/// The counters below an algorithm.
template <class Allreduce>
auto& counters_of(Allreduce& allreduce) {
  if constexpr (requires { allreduce.comm().template target<counting>(); }) {
    return *allreduce.comm().template target<counting>();
  } else {
    return allreduce.comm();
  }
}

/// One call, and what it left behind.
template <class Allreduce>
auto observe(Allreduce& allreduce, std::vector<typename Allreduce::value_type> const& accumulator) {
  using value_type = typename Allreduce::value_type;
  observed_call<value_type, typename Allreduce::index_type> record;
  record.accumulator = accumulator;
  Kokkos::View<value_type const*, memory> const input = to_view(accumulator);
  auto& counters = counters_of(allreduce);
  counters.reset();
  auto const& update = allreduce(input);
  record.total = counters.total();
  record.indices = to_vector(update.indices());
  record.values = to_vector(update.values());
  record.contributed = to_vector(update.contributed());
  record.residual = accumulator;
  for (auto const index : record.contributed) {
    record.residual.at(static_cast<std::size_t>(index)) = 0;
  }
  auto const returned_indices = to_vector(update.returned().indices);
  auto const returned_values = to_vector(update.returned().values);
  for (std::size_t i = 0; i < returned_indices.size(); ++i) {
    record.residual.at(static_cast<std::size_t>(returned_indices[i])) += returned_values[i];
  }
  record.statistics = allreduce.last_call();
  record.bound_words = allreduce.bound_words();
  return record;
}

/// The accumulator of a moment: the gradient, and what the call before left over.
template <class Value, class Gradient>
std::vector<Value> accumulator_of(moment when, std::vector<Value> const& residual, Gradient const& gradient) {
  std::vector<Value> accumulator(residual.size());
  gradient(when, accumulator);
  for (std::size_t i = 0; i < accumulator.size(); ++i) {
    accumulator[i] += residual[i];
  }
  return accumulator;
}

/// What is not the same, to the bit, in two calls of one rank; empty where all is.
template <class Record>
std::string difference(Record const& a, Record const& b) {
  auto const of_all = [](oktopk::call_statistics const& s) {
    return std::tuple(s.global_selected, s.global_reevaluated, s.repartitioned, s.balanced, s.local_selected,
                      s.local_reevaluated);
  };
  return a.indices != b.indices                                                   ? "other indices"
         : bits(a.values) != bits(b.values)                                       ? "other values"
         : a.contributed != b.contributed || bits(a.residual) != bits(b.residual) ? "another residual"
         : of_all(a.statistics) != of_all(b.statistics)                           ? "other statistics"
         : a.total.bytes_sent != b.total.bytes_sent || a.total.messages_sent != b.total.messages_sent ? "other traffic"
                                                                                                      : "";
}

} // namespace oktopk_tests
