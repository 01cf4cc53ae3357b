// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/algorithm/concept.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// A subject is an algorithm with its policies, as the suite sees it:
//   value_type, index_type
//   algorithm<Comm>            the algorithm on a communicator
//   communicator               counted: `counting`, or one of its own
//   options(length, k)         short periods, so that a few iterations see all of them
//   rounds                     whether messages round values: then whole numbers do not stay whole (optional)
//   volume_fault(...)          what is wrong with the words of one call, or nothing (optional)
//   reference_fault(...)       what is wrong with the results of a run, or nothing (optional)
namespace oktopk_tests {

/// Everything about one call on one rank, on the host.
template <class Value, class Index>
struct call_record {
  std::vector<Value> accumulator;
  std::vector<Index> indices;
  std::vector<Value> values;
  std::vector<Index> contributed;
  std::vector<Value> residual; ///< what is left for the next iteration
  oktopk::call_statistics statistics;
  std::array<oktopk::traffic, oktopk::phase_count> traffic;
  std::vector<std::int64_t> boundaries;
  std::vector<Value> local_threshold;  ///< one, where the algorithm carries one
  std::vector<Value> global_threshold; ///< the same
  double bound_words = 0;

  oktopk::traffic of(oktopk::phase p) const { return traffic[static_cast<std::size_t>(p)]; }

  oktopk::traffic total() const {
    oktopk::traffic sum;
    for (auto const& each : traffic) {
      sum += each;
    }
    return sum;
  }
};

template <class Subject>
using record_of = call_record<typename Subject::value_type, typename Subject::index_type>;

/// The calls of all ranks: [rank][iteration].
template <class Subject>
using run_of = std::vector<std::vector<record_of<Subject>>>;

/// Ranks that a subject runs on.
template <class Subject>
using communicator_of = typename Subject::communicator;

template <class Subject>
using algorithm_of = typename Subject::template algorithm<communicator_of<Subject>>;

/// An algorithm of a subject on the ranks of a process.
template <class Subject>
std::unique_ptr<algorithm_of<Subject>> made(oktopk::in_process_communicator comm, std::int64_t length, std::int64_t k) {
  using transport = std::remove_cvref_t<decltype(std::declval<communicator_of<Subject>&>().inner())>;
  return std::make_unique<algorithm_of<Subject>>(execution(), communicator_of<Subject>(transport(comm)),
                                                 Subject::options(length, k));
}

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
  call_record<value_type, typename Allreduce::index_type> record;
  record.accumulator = accumulator;
  Kokkos::View<value_type const*, memory> const input = to_view(accumulator);
  auto& counters = counters_of(allreduce);
  counters.reset();
  auto const& update = allreduce(input);
  for (int p = 0; p < oktopk::phase_count; ++p) {
    record.traffic[static_cast<std::size_t>(p)] = counters.of_phase(static_cast<oktopk::phase>(p));
  }
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
  auto const& state = allreduce.state();
  if constexpr (requires { state.boundaries; }) {
    record.boundaries = state.boundaries;
  }
  if constexpr (requires { state.local.threshold; }) {
    record.local_threshold = {state.local.threshold};
  }
  if constexpr (requires { state.global.threshold; }) {
    record.global_threshold = {state.global.threshold};
  }
  return record;
}

struct shape {
  std::int64_t length = 0;
  std::int64_t k = 0;
  int iterations = 1;
};

/// A base of subjects: their types, ranks that count, and the bound that the algorithm states.
template <class Value = float, class Index = std::int32_t>
struct subject_of {
  using value_type = Value;
  using index_type = Index;
  using communicator = counting;

  static std::string volume_fault(call_record<Value, Index> const& call, int, shape) {
    return call.total().words_sent() <= call.bound_words ? std::string() : "more words than the bound";
  }
};

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

struct nothing_before {
  template <class Allreduce, class Value>
  void operator()(Allreduce&, moment, std::vector<Value> const&) const {}
};

/// Iterations with error feedback, as `sgd` does it, all written down. `gradient(moment, vector)` fills the vector;
/// `before(allreduce, moment, accumulator)` sees each call before it is made, and may put another object in place.
template <class Subject, class Gradient, class Before = nothing_before>
run_of<Subject> run(int ranks, shape what, Gradient const& gradient, Before const& before = {}) {
  run_of<Subject> all(static_cast<std::size_t>(ranks));
  oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
    auto allreduce = made<Subject>(comm, what.length, what.k);
    auto& mine = all[static_cast<std::size_t>(comm.rank())];
    std::vector<typename Subject::value_type> residual(static_cast<std::size_t>(what.length), 0);
    for (int iteration = 0; iteration < what.iterations; ++iteration) {
      moment const now{comm.rank(), ranks, iteration};
      auto const accumulator = accumulator_of(now, residual, gradient);
      before(allreduce, now, accumulator);
      mine.push_back(observe(*allreduce, accumulator));
      residual = mine.back().residual;
    }
  });
  return all;
}

} // namespace oktopk_tests
