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

/// An input that some implementation has tripped over.
template <class Value>
struct special_input {
  std::string name;
  shape what;
  std::function<void(moment, std::vector<Value>&)> gradient;
  bool exact = true; ///< sums do not round
};

template <class Value>
std::vector<special_input<Value>> special_inputs() {
  using vector = std::vector<Value>;
  whole_numbers const whole{7};
  auto const everywhere = [](Value value) {
    return [value](moment, vector& gradient) { gradient.assign(gradient.size(), value); };
  };
  auto const small_number = [](moment when, std::size_t i, std::int64_t most) {
    auto const bits = noise(11, static_cast<std::uint64_t>(when.rank), static_cast<std::uint64_t>(when.iteration), i);
    return static_cast<Value>(number_in(-most, most, bits));
  };
  return {
      {"no elements at all", {0, 0, 3}, whole},
      {"one element", {1, 1, 3}, whole},
      {"fewer elements than ranks", {3, 2, 4}, whole},
      {"k = 0", {50, 0, 3}, whole},
      {"k = 1", {50, 1, 6}, whole},
      {"k = n", {50, 50, 3}, whole},
      {"all zero", {100, 10, 3}, everywhere(Value(0))},
      {"all equal", {100, 10, 5}, everywhere(Value(-3))},
      {"ties at the threshold",
       {200, 30, 8},
       [=](moment when, vector& gradient) {
         for (std::size_t i = 0; i < gradient.size(); ++i) {
           gradient[i] = small_number(when, i, 2);
         }
       }},
      {"many ties at the threshold",
       {3000, 30, 6},
       [=](moment when, vector& gradient) {
         for (std::size_t i = 0; i < gradient.size(); ++i) {
           gradient[i] = small_number(when, i, 2);
         }
       }},
      {"very many zeros",
       {3000, 30, 6},
       [=](moment when, vector& gradient) {
         for (std::size_t i = 0; i < gradient.size(); ++i) {
           gradient[i] = i % 200 == 0 ? small_number(when, i, 9) : Value(0);
         }
       }},
      {"very many of one magnitude", {3000, 30, 4}, everywhere(Value(7))},
      {"one rank empty",
       {200, 20, 8},
       [=](moment when, vector& gradient) {
         whole(when, gradient);
         if (when.rank == when.ranks / 2) {
           gradient.assign(gradient.size(), Value(0));
         }
       }},
      {"all ranks but one empty",
       {200, 20, 8},
       [=](moment when, vector& gradient) {
         whole(when, gradient);
         if (when.rank != when.ranks - 1) {
           gradient.assign(gradient.size(), Value(0));
         }
       }},
      {"all mass in the last tenth",
       {300, 30, 8},
       [=](moment when, vector& gradient) {
         whole(when, gradient);
         for (std::size_t i = 0; i < gradient.size() * 9 / 10; ++i) {
           gradient[i] = 0;
         }
       }},
      {"each rank large in a place of its own, which wanders",
       {320, 20, 8},
       [=](moment when, vector& gradient) {
         whole(when, gradient);
         std::size_t const begin = static_cast<std::size_t>((when.rank * 37 + when.iteration * 90) % 300);
         for (std::size_t i = begin; i < begin + 20; ++i) {
           gradient[i] *= 1000;
         }
       }},
      {"each rank large in the next one's region",
       {1600, 40, 5},
       [=](moment when, vector& gradient) {
         whole(when, gradient);
         std::size_t const blocks = static_cast<std::size_t>(when.ranks);
         for (std::size_t i = 0; i < gradient.size() && when.iteration > 0; ++i) {
           bool const next = i * blocks / gradient.size() == static_cast<std::size_t>(when.rank + 1) % blocks;
           gradient[i] *= Value(next ? 100 : 0);
         }
       }},
      {"sums that cancel",
       {100, 10, 5},
       [=](moment when, vector& gradient) {
         moment const pair{when.rank / 2, when.ranks, when.iteration};
         whole(pair, gradient);
         for (Value& x : gradient) {
           x = when.rank % 2 == 0 ? x : -x;
         }
       }},
      {"denormal numbers",
       {100, 10, 5},
       [=](moment when, vector& gradient) {
         for (std::size_t i = 0; i < gradient.size(); ++i) {
           gradient[i] = small_number(when, i, 40) * std::numeric_limits<Value>::denorm_min();
         }
       }},
      {"negative zeros",
       {100, 20, 5},
       [=](moment when, vector& gradient) {
         for (std::size_t i = 0; i < gradient.size(); ++i) {
           gradient[i] = i % 9 == 0 ? small_number(when, i, 5) : i % 2 == 0 ? -Value(0) : Value(0);
         }
       }},
      {"magnitudes from the smallest to nearly the largest",
       {200, 60, 4},
       [=](moment when, vector& gradient) {
         for (std::size_t i = 0; i < gradient.size(); ++i) {
           auto const bits = noise(13, static_cast<std::uint64_t>(when.rank), i);
           int const exponent = static_cast<int>(number_in(std::numeric_limits<Value>::min_exponent,
                                                           std::numeric_limits<Value>::max_exponent - 12, bits));
           gradient[i] = std::ldexp(static_cast<Value>(bits % 2 == 0 ? 1 : -1), exponent);
         }
       },
       false},
      {"gradients that jump to ten times and to a tenth",
       {1400, 25, 12},
       [=](moment when, vector& gradient) {
         whole(when, gradient);
         for (Value& x : gradient) {
           x *= Value(when.iteration % 5 == 3 ? 1000 : when.iteration % 5 == 4 ? 1 : 100);
         }
       }},
  };
}

/// Runs a subject through all special inputs on so many ranks; the first thing that is wrong, or nothing.
template <class Subject>
std::string special_input_fault(int ranks) {
  for (auto const& input : special_inputs<typename Subject::value_type>()) {
    std::string fault;
    try {
      auto const once = run<Subject>(ranks, input.what, input.gradient);
      fault = run_fault<Subject>(once, input.what, input.exact);
    } catch (std::exception const& thrown) {
      fault = thrown.what();
    }
    if (!fault.empty()) {
      return input.name + ", " + std::to_string(ranks) + " ranks: " + fault;
    }
  }
  return {};
}

} // namespace oktopk_tests
