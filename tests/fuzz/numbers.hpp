// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

namespace oktopk_fuzz {

template <class Value>
using pattern_of = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;

/// Equality that tells -0 from 0, and takes a NaN for itself.
template <class Value>
bool same_bits(Value a, Value b) {
  return std::bit_cast<pattern_of<Value>>(a) == std::bit_cast<pattern_of<Value>>(b);
}

template <class Value>
bool same_bits(std::vector<Value> const& a, std::vector<Value> const& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(Value)) == 0);
}

template <class Value>
bool is_negative_zero(Value x) {
  return x == 0 && std::signbit(x);
}

/// A number in words, with its bits where it has few digits to be told by.
std::string in_words(double x);

/// A sparse vector, indices ascending.
template <class Value>
struct entries {
  std::vector<std::int64_t> indices;
  std::vector<Value> values;

  std::size_t size() const { return indices.size(); }
  void push_back(std::int64_t index, Value value) {
    indices.push_back(index);
    values.push_back(value);
  }
};

/// What a selector carries, whichever it is.
template <class Value>
struct selector_numbers {
  bool has_threshold = false;
  Value threshold = 0;
  std::int64_t evaluated = -1;
  bool has_guess = false;
  Value prefilter = 0; // the guess of one rank
  Value magnitude = 0; // that of several ranks
  std::int64_t bits = 0;
};

/// The state of an algorithm, whichever it is, or of `sgd` over one.
template <class Value>
struct state_numbers {
  std::int64_t iteration = 0;
  selector_numbers<Value> local;
  selector_numbers<Value> global;
  bool has_boundaries = false;
  std::vector<std::int64_t> boundaries;
  bool of_sgd = false;
  double learning_rate = 0;
  std::vector<Value> residual;
};

/// The first number that is another in the other one, in words; empty where none is.
template <class Value>
std::string difference(selector_numbers<Value> const& a, selector_numbers<Value> const& b) {
  auto const differ = [](char const* name, double x, double y) {
    return std::string(name) + " " + in_words(x) + " and " + in_words(y);
  };
  if (!same_bits(a.threshold, b.threshold)) {
    return differ("threshold", static_cast<double>(a.threshold), static_cast<double>(b.threshold));
  }
  if (a.evaluated != b.evaluated) {
    return "evaluated in " + std::to_string(a.evaluated) + " and " + std::to_string(b.evaluated);
  }
  if (!same_bits(a.prefilter, b.prefilter)) {
    return differ("guess of one rank", static_cast<double>(a.prefilter), static_cast<double>(b.prefilter));
  }
  if (!same_bits(a.magnitude, b.magnitude)) {
    return differ("guess", static_cast<double>(a.magnitude), static_cast<double>(b.magnitude));
  }
  return a.bits == b.bits ? "" : "range of the guess " + std::to_string(a.bits) + " and " + std::to_string(b.bits);
}

template <class Value>
std::string difference(state_numbers<Value> const& a, state_numbers<Value> const& b) {
  if (a.iteration != b.iteration) {
    return "iteration " + std::to_string(a.iteration) + " and " + std::to_string(b.iteration);
  }
  if (auto const text = difference(a.local, b.local); !text.empty()) {
    return "local " + text;
  }
  if (auto const text = difference(a.global, b.global); !text.empty()) {
    return "global " + text;
  }
  if (a.boundaries != b.boundaries) {
    return "boundaries";
  }
  if (!same_bits(a.learning_rate, b.learning_rate)) {
    return "learning rate " + in_words(a.learning_rate) + " and " + in_words(b.learning_rate);
  }
  return same_bits(a.residual, b.residual) ? "" : "residual";
}

} // namespace oktopk_fuzz
