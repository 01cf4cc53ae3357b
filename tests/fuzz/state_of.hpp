// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "fuzz/numbers.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace oktopk_fuzz {

template <class Value, class Selector>
selector_numbers<Value> numbers_of_selector(Selector const& state) {
  selector_numbers<Value> numbers;
  if constexpr (requires { state.threshold; }) {
    numbers.has_threshold = true;
    numbers.threshold = state.threshold;
    numbers.evaluated = state.evaluated;
  }
  if constexpr (requires { state.guess; }) {
    numbers.has_guess = true;
    numbers.prefilter = state.guess.prefilter.magnitude;
    numbers.magnitude = state.guess.bracket.magnitude;
    numbers.bits = state.guess.bracket.bits;
  }
  return numbers;
}

/// The numbers of a state of any algorithm, or of `sgd`.
template <class Value, class State>
state_numbers<Value> numbers_of(State const& state) {
  if constexpr (requires { state.allreduce; }) {
    state_numbers<Value> numbers = numbers_of<Value>(state.allreduce);
    numbers.of_sgd = true;
    numbers.learning_rate = state.learning_rate;
    numbers.residual = state.residual;
    return numbers;
  } else {
    state_numbers<Value> numbers;
    numbers.iteration = state.iteration;
    if constexpr (requires { state.local; }) {
      numbers.local = numbers_of_selector<Value>(state.local);
    }
    if constexpr (requires { state.global; }) {
      numbers.global = numbers_of_selector<Value>(state.global);
    }
    if constexpr (requires { state.boundaries; }) {
      numbers.has_boundaries = true;
      numbers.boundaries = state.boundaries;
    }
    return numbers;
  }
}

template <class Value, class Selector>
void put_numbers_of_selector([[maybe_unused]] selector_numbers<Value> const& numbers,
                             [[maybe_unused]] Selector& state) {
  if constexpr (requires { state.threshold; }) {
    state.threshold = numbers.threshold;
    state.evaluated = numbers.evaluated;
  }
  if constexpr (requires { state.guess; }) {
    state.guess.prefilter.magnitude = numbers.prefilter;
    state.guess.bracket.magnitude = numbers.magnitude;
    using bits_type = decltype(state.guess.bracket.bits);
    state.guess.bracket.bits = static_cast<bits_type>(std::clamp<std::int64_t>(
        numbers.bits, std::numeric_limits<bits_type>::min(), std::numeric_limits<bits_type>::max()));
  }
}

/// The way back.
template <class Value, class State>
void put_numbers(state_numbers<Value> const& numbers, State& state) {
  if constexpr (requires { state.allreduce; }) {
    put_numbers(numbers, state.allreduce);
    state.learning_rate = numbers.learning_rate;
    state.residual = numbers.residual;
  } else {
    state.iteration = numbers.iteration;
    if constexpr (requires { state.local; }) {
      put_numbers_of_selector(numbers.local, state.local);
    }
    if constexpr (requires { state.global; }) {
      put_numbers_of_selector(numbers.global, state.global);
    }
    if constexpr (requires { state.boundaries; }) {
      state.boundaries = numbers.boundaries;
    }
  }
}

} // namespace oktopk_fuzz
