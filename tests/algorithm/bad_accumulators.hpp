// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/invariants.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace oktopk_tests {

/// An accumulator as it is handed over: of any length, in any layout.
template <class Value>
struct handed_over {
  std::vector<Value> values;
  bool strided = false;
};

/// How an accumulator is spoilt on some ranks, and what every rank must then say.
template <class Value>
struct bad_accumulator {
  std::string name;
  std::function<void(moment, handed_over<Value>&)> spoil;
  oktopk::fault code;
  std::function<std::string(int ranks)> words;
};

template <class Value>
std::vector<bad_accumulator<Value>> bad_accumulators(std::int64_t length) {
  using oktopk::fault;
  using given = handed_over<Value>;
  auto const last = [](int ranks) { return "rank " + std::to_string(ranks - 1) + ": "; };
  auto const n = static_cast<std::size_t>(length);
  auto const put = [last](Value what, std::size_t where, char const* name) {
    return bad_accumulator<Value>{
        name,
        [=](moment when, given& accumulator) {
          if (when.rank == when.ranks - 1) {
            accumulator.values[where] = what;
          }
        },
        fault::non_finite, [=](int ranks) { return last(ranks) + "the value at index " + std::to_string(where); }};
  };
  Value const infinity = std::numeric_limits<Value>::infinity();
  return {
      {"one too long on the last rank",
       [=](moment when, given& a) { a.values.resize(n + (when.rank == when.ranks - 1 ? 1 : 0), Value(1)); },
       fault::length_mismatch,
       [=](int ranks) {
         return last(ranks) + "the accumulator has " + std::to_string(n + 1) + " elements, expected " +
                std::to_string(n);
       }},
      {"one too short on all ranks", [=](moment, given& a) { a.values.resize(n - 1); }, fault::length_mismatch,
       [=](int) { return "rank 0: the accumulator has " + std::to_string(n - 1); }},
      {"empty on rank 0", [=](moment when, given& a) { a.values.resize(when.rank == 0 ? 0 : n); },
       fault::length_mismatch, [](int) { return std::string("rank 0: the accumulator has 0 elements"); }},
      {"with a stride on the last rank", [](moment when, given& a) { a.strided = when.rank == when.ranks - 1; },
       fault::not_contiguous, [=](int ranks) { return last(ranks) + "the accumulator is not contiguous"; }},
      put(std::numeric_limits<Value>::quiet_NaN(), 0, "NaN"),
      put(-std::numeric_limits<Value>::quiet_NaN(), n - 1, "negative NaN"),
      put(infinity, n / 2, "infinity"),
      put(-infinity, n / 3, "negative infinity"),
      {"NaN everywhere on all ranks",
       [](moment, given& a) { a.values.assign(a.values.size(), std::numeric_limits<Value>::quiet_NaN()); },
       fault::non_finite, [](int) { return std::string("rank 0: the value at index 0 "); }},
      {"all ranks bad, each in its own way",
       [=](moment when, given& a) {
         a.values[static_cast<std::size_t>(when.rank) % n] = infinity;
         if (when.rank % 2 == 1) {
           a.values.resize(n + 7);
         }
       },
       fault::non_finite, [](int) { return std::string("rank 0: the value at index 0 "); }},
  };
}

/// Calls with something spoilt. The views of what is handed over differ in type, as they do in a program.
template <class Allreduce>
void hand_over(Allreduce& allreduce, handed_over<typename Allreduce::value_type> const& given) {
  using value_type = typename Allreduce::value_type;
  if (!given.strided) {
    Kokkos::View<value_type*, memory> const view = to_view(given.values);
    allreduce(view);
    return;
  }
  Kokkos::View<value_type**, Kokkos::LayoutRight, memory> const table("test data", given.values.size(), 2);
  allreduce(Kokkos::View<value_type*, Kokkos::LayoutStride, memory>(Kokkos::subview(table, Kokkos::ALL(), 0)));
}

/// Every way to spoil an accumulator, before every iteration in turn: all ranks say the same, and the object goes on
/// like a twin that never saw the bad call. The first thing that is wrong, or nothing.
template <class Subject>
std::string bad_accumulator_fault(int ranks, shape what) {
  using value_type = typename Subject::value_type;
  whole_numbers const gradient{5, 4};
  run_of<Subject> const twin = run<Subject>(ranks, what, gradient);
  auto const cases = bad_accumulators<value_type>(what.length);
  for (int bad_at = 0; bad_at < what.iterations; ++bad_at) {
    for (auto const& bad : cases) {
      run_of<Subject> all(static_cast<std::size_t>(ranks));
      std::vector<failure> said(static_cast<std::size_t>(ranks));
      std::vector<failure> const thrown = failures_of(ranks, [&](oktopk::in_process_communicator comm) {
        algorithm_of<Subject> allreduce = made<Subject>(comm, what.length, what.k);
        auto const rank = static_cast<std::size_t>(comm.rank());
        std::vector<value_type> residual(static_cast<std::size_t>(what.length), value_type(0));
        for (int iteration = 0; iteration < what.iterations; ++iteration) {
          moment const now{comm.rank(), ranks, iteration};
          std::vector<value_type> const accumulator = accumulator_of(now, residual, gradient);
          if (iteration == bad_at) {
            handed_over<value_type> spoilt{accumulator};
            bad.spoil(now, spoilt);
            said[rank] = failure_of([&] { hand_over(allreduce, spoilt); });
          }
          all[rank].push_back(observe(allreduce, accumulator));
          residual = all[rank].back().residual;
        }
      });
      std::string const where =
          bad.name + ", before iteration " + std::to_string(bad_at) + ", " + std::to_string(ranks) + " ranks: ";
      for (failure const& after : thrown) {
        if (after.code != oktopk::fault::none) {
          return where + "a later call failed: " + after.text;
        }
      }
      std::string fault = unlike(said, bad.code, bad.words(ranks));
      fault = fault.empty() ? repetition_fault(twin, all) : fault;
      if (!fault.empty()) {
        return where + fault;
      }
    }
  }
  return {};
}

/// Sums that overflow although every accumulator is finite: all ranks must say so, and not blame somebody's value.
template <class Subject>
std::string overflow_fault(int ranks, shape what) {
  using value_type = typename Subject::value_type;
  auto const place = static_cast<std::size_t>(what.length) - 2;
  std::vector<failure> said(static_cast<std::size_t>(ranks));
  std::vector<failure> const thrown = failures_of(ranks, [&](oktopk::in_process_communicator comm) {
    algorithm_of<Subject> allreduce = made<Subject>(comm, what.length, what.k);
    std::vector<value_type> accumulator(static_cast<std::size_t>(what.length));
    whole_numbers{5}({comm.rank(), ranks, 0}, accumulator);
    std::vector<value_type> overflowing = accumulator;
    overflowing[place] = std::numeric_limits<value_type>::max();
    said[static_cast<std::size_t>(comm.rank())] = failure_of([&] { hand_over(allreduce, {overflowing}); });
    observe(allreduce, accumulator);
  });
  for (failure const& after : thrown) {
    if (after.code != oktopk::fault::none) {
      return "a call after an overflow failed: " + after.text;
    }
  }
  std::string fault = unlike(said, oktopk::fault::non_finite, "index " + std::to_string(place));
  return fault.empty() ? unlike(said, oktopk::fault::non_finite, "sum") : fault;
}

} // namespace oktopk_tests
