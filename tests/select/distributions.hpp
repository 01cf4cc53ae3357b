// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/select/concept.hpp>
#include <oktopk/select/kernel/digits.hpp>

#include <functional>
#include <numeric>

namespace oktopk_tests {

/// Values of many kinds, by name: what a selection must cope with.
template <class Value>
std::vector<std::pair<std::string, std::function<Value(std::uint64_t)>>> distributions() {
  using limits = std::numeric_limits<Value>;
  auto const sign = [](std::uint64_t bits) { return bits % 2 == 0 ? Value(1) : Value(-1); };
  return {
      {"heavy-tailed", [](std::uint64_t b) { return static_cast<Value>(heavy_tailed(b)); }},
      {"uniform", [=](std::uint64_t b) { return sign(b) * static_cast<Value>(fraction(noise(b))); }},
      {"constant", [=](std::uint64_t b) { return sign(b) * Value(0.375); }},
      {"zero", [=](std::uint64_t b) { return sign(b) * Value(0); }},
      {"two values", [=](std::uint64_t b) { return sign(b) * (b % 7 == 0 ? Value(2) : Value(1)); }},
      {"neighbouring values",
       [=](std::uint64_t b) { return b % 3 == 0 ? std::nextafter(Value(1), Value(2)) : Value(1); }},
      {"small whole numbers", [](std::uint64_t b) { return static_cast<Value>(number_in(-9, 9, b)); }},
      {"denormal numbers",
       [](std::uint64_t b) { return static_cast<Value>(number_in(-500, 500, b)) * limits::denorm_min(); }},
      {"all exponents",
       [=](std::uint64_t b) {
         return sign(b) * std::ldexp(static_cast<Value>(1 + fraction(noise(b))),
                                     static_cast<int>(number_in(limits::min_exponent - limits::digits - 3,
                                                                limits::max_exponent - 1, noise(b, 1))));
       }},
      {"mostly zero", [=](std::uint64_t b) { return b % 11 == 0 ? static_cast<Value>(heavy_tailed(b)) : Value(0); }},
      {"with infinities", [=](std::uint64_t b) { return sign(b) * (b % 13 == 0 ? limits::infinity() : Value(b % 5)); }},
  };
}

template <class Value>
std::vector<Value> drawn(std::function<Value(std::uint64_t)> const& from, std::int64_t size, std::uint64_t seed) {
  std::vector<Value> values;
  for (std::int64_t i = 0; i < size; ++i) {
    values.push_back(from(noise(seed, static_cast<std::uint64_t>(i))));
  }
  return values;
}

template <class Value>
using local_candidates = oktopk::detail::candidates<std::int32_t, Value, memory>;

template <class Value, class Index = std::int32_t>
using workspace_of = oktopk::detail::selection_workspace<Index, Value, execution>;

/// All values, each at its own position, as a local selection sees them. The view must live on.
template <class Index = std::int32_t, class Value>
oktopk::detail::candidates<Index, Value, memory> candidates_in(Kokkos::View<Value*, memory> const& values) {
  return {oktopk::array_ref<Value const, memory>(values.data(), values.extent(0)), {}};
}

/// The first `count` entries of a workspace.
template <class Workspace>
auto selection_in(Workspace const& workspace, std::int64_t count) {
  return entries_of(workspace.entries(count));
}

/// The `count` largest by the patterns of their magnitudes, ties to the lower index.
template <class Value>
sparse_vector<Value> largest(std::vector<Value> const& values, std::int64_t count) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return oktopk::detail::magnitude_bits(values[a]) > oktopk::detail::magnitude_bits(values[b]);
  });
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  sparse_vector<Value> chosen;
  for (std::size_t const i : order) {
    chosen.push_back(static_cast<std::int64_t>(i), values[i]);
  }
  return chosen;
}

/// The bin of every candidate, one by one; what the masks of whole blocks must agree with.
template <class Value>
std::vector<std::int64_t> histogram_by_definition(std::vector<Value> const& values,
                                                  oktopk::detail::digit<Value> which) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(which.bins()), 0);
  for (Value const value : values) {
    if (std::int64_t const bin = which.bin(oktopk::detail::magnitude_bits(value)); bin >= 0) {
      counts[static_cast<std::size_t>(bin)] += 1;
    }
  }
  return counts;
}

} // namespace oktopk_tests
