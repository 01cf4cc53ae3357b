// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace oktopk_fuzz {

namespace {

template <class Value>
std::string impossible(selector_numbers<Value> const& numbers, std::int64_t iteration, bool of_all_ranks) {
  if (numbers.has_threshold && !(numbers.threshold >= 0 && std::isfinite(numbers.threshold))) {
    return "a threshold that is negative or not finite";
  }
  if (numbers.has_threshold && numbers.evaluated > iteration) {
    return "a threshold that was evaluated in the future";
  }
  for (Value const guess : {numbers.prefilter, numbers.magnitude}) {
    if (numbers.has_guess && !(guess >= 0 && std::isfinite(guess))) {
      return "a guess that is negative or not finite";
    }
  }
  // A range of patterns is no wider than all magnitudes together.
  std::int64_t const most = 8 * static_cast<std::int64_t>(sizeof(Value)) - 1;
  if (numbers.has_guess && of_all_ranks && (numbers.bits < 0 || numbers.bits > most)) {
    return "a range of no possible width";
  }
  return {};
}

} // namespace

template <class Value>
std::string impossible(facts const&, fuzz_case const& what, state_numbers<Value> const& state) {
  if (state.iteration < 0) {
    return "a negative iteration";
  }
  if (auto const text = impossible(state.local, state.iteration, false); !text.empty()) {
    return "locally " + text;
  }
  if (auto const text = impossible(state.global, state.iteration, true); !text.empty()) {
    return "globally " + text;
  }
  auto const& b = state.boundaries;
  if (!b.empty() && (b.size() != static_cast<std::size_t>(what.ranks) + 1 || b.front() != 0 ||
                     b.back() != what.how.length || !std::is_sorted(b.begin(), b.end()))) {
    return "boundaries that do not ascend from 0 to the length";
  }
  if (state.of_sgd &&
      (!std::isfinite(state.learning_rate) || state.residual.size() != static_cast<std::size_t>(what.how.length))) {
    return "a residual of another length, or a rate that is not finite";
  }
  return {};
}

template std::string impossible(facts const&, fuzz_case const&, state_numbers<float> const&);
template std::string impossible(facts const&, fuzz_case const&, state_numbers<double> const&);

} // namespace oktopk_fuzz
