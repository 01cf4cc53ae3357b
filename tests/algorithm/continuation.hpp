// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "algorithm/invariants.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace oktopk_tests {

/// Goes on from the state saved before every iteration, in a new object: the rest must be the same to the bit.
template <class Subject>
std::string continuation_fault(int ranks, shape what) {
  using value_type = typename Subject::value_type;
  whole_numbers const gradient{9, 6};
  run_of<Subject> const whole = run<Subject>(ranks, what, gradient);
  for (int saved_at = 0; saved_at <= what.iterations; ++saved_at) {
    run_of<Subject> rest(static_cast<std::size_t>(ranks));
    oktopk::in_process::run(ranks, [&](oktopk::in_process_communicator comm) {
      algorithm_of<Subject> first = made<Subject>(comm, what.length, what.k);
      algorithm_of<Subject> second = made<Subject>(comm, what.length, what.k);
      auto const rank = static_cast<std::size_t>(comm.rank());
      std::vector<value_type> residual(static_cast<std::size_t>(what.length), value_type(0));
      for (int iteration = 0; iteration < what.iterations; ++iteration) {
        if (iteration == saved_at) {
          auto const saved = first.state();
          second.restore(saved);
        }
        auto& now = iteration < saved_at ? first : second;
        rest[rank].push_back(observe(now, accumulator_of({comm.rank(), ranks, iteration}, residual, gradient)));
        residual = rest[rank].back().residual;
      }
    });
    if (std::string const fault = repetition_fault(whole, rest); !fault.empty()) {
      return std::to_string(ranks) + " ranks, restored before iteration " + std::to_string(saved_at) + ": " + fault;
    }
  }
  return {};
}

/// Restores, on the last rank, a state that `spoil` has changed: an error on every rank, after which the object goes on
/// as if nothing had been. `spoil(state, rank, ranks)`.
template <class Subject, class Spoil>
std::string bad_state_fault(int ranks, shape what, Spoil const& spoil, oktopk::fault code) {
  using value_type = typename Subject::value_type;
  whole_numbers const gradient{9};
  run_of<Subject> const untouched = run<Subject>(ranks, what, gradient);
  run_of<Subject> all(static_cast<std::size_t>(ranks));
  std::vector<failure> said(static_cast<std::size_t>(ranks));
  std::vector<failure> const thrown = failures_of(ranks, [&](oktopk::in_process_communicator comm) {
    algorithm_of<Subject> allreduce = made<Subject>(comm, what.length, what.k);
    auto const rank = static_cast<std::size_t>(comm.rank());
    std::vector<value_type> residual(static_cast<std::size_t>(what.length), value_type(0));
    for (int iteration = 0; iteration < what.iterations; ++iteration) {
      if (iteration == 2) {
        auto saved = allreduce.state();
        spoil(saved, comm.rank(), ranks);
        said[rank] = failure_of([&] { allreduce.restore(saved); });
      }
      all[rank].push_back(observe(allreduce, accumulator_of({comm.rank(), ranks, iteration}, residual, gradient)));
      residual = all[rank].back().residual;
    }
  });
  for (failure const& after : thrown) {
    if (after.code != oktopk::fault::none) {
      return "after a bad state: " + after.text;
    }
  }
  std::string const fault = unlike(said, code, "");
  return fault.empty() ? repetition_fault(untouched, all) : fault;
}

} // namespace oktopk_tests
