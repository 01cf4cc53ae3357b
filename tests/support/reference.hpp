// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

// What the library is measured against: short sequential code that shares nothing with it.
namespace oktopk_tests {

/// A sparse vector on the host, indices ascending.
template <class Value>
struct sparse_vector {
  std::vector<std::int64_t> indices;
  std::vector<Value> values;

  std::int64_t size() const { return static_cast<std::int64_t>(indices.size()); }
  void push_back(std::int64_t index, Value value) {
    indices.push_back(index);
    values.push_back(value);
  }
  bool operator==(sparse_vector const&) const = default;
};

template <class Value>
sparse_vector<Value> all_entries(std::vector<Value> const& dense) {
  sparse_vector<Value> all;
  for (std::size_t i = 0; i < dense.size(); ++i) {
    all.push_back(static_cast<std::int64_t>(i), dense[i]);
  }
  return all;
}

/// The entries of at least this magnitude.
template <class Value>
sparse_vector<Value> at_least(sparse_vector<Value> const& from, Value threshold) {
  sparse_vector<Value> kept;
  for (std::size_t i = 0; i < from.indices.size(); ++i) {
    if (std::fabs(from.values[i]) >= threshold) {
      kept.push_back(from.indices[i], from.values[i]);
    }
  }
  return kept;
}

/// The k entries of the largest magnitudes, ties to the lower index; all where there are not so many.
template <class Value>
sparse_vector<Value> top(sparse_vector<Value> const& from, std::int64_t k) {
  std::vector<std::size_t> order(from.indices.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  auto const count = std::min(order.size(), static_cast<std::size_t>(k));
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                   [&](std::size_t a, std::size_t b) {
                     Value const x = std::fabs(from.values[a]);
                     Value const y = std::fabs(from.values[b]);
                     return x > y || (x == y && a < b);
                   });
  order.resize(count);
  std::sort(order.begin(), order.end());
  sparse_vector<Value> kept;
  for (std::size_t const i : order) {
    kept.push_back(from.indices[i], from.values[i]);
  }
  return kept;
}

/// The smallest magnitude of some entries.
template <class Value>
Value smallest(sparse_vector<Value> const& entries) {
  Value least = std::fabs(entries.values.at(0));
  for (Value const value : entries.values) {
    least = std::min(least, static_cast<Value>(std::fabs(value)));
  }
  return least;
}

/// Sums of sparse vectors, one per rank, added in the order the library documents: at the owner of a region first its
/// own entry, then that of the rank below, and so on round the ring. `add` gives a sum of two values.
template <class Value, class Add = std::plus<Value>>
sparse_vector<Value> sum_by_regions(std::vector<sparse_vector<Value>> const& parts,
                                    std::vector<std::int64_t> const& boundaries, Add const& add = {}) {
  std::size_t const ranks = parts.size();
  sparse_vector<Value> sums;
  for (std::size_t owner = 0; owner < ranks; ++owner) {
    std::int64_t const begin = boundaries[owner];
    std::vector<Value> region(static_cast<std::size_t>(boundaries[owner + 1] - begin), Value(0));
    std::vector<bool> touched(region.size(), false);
    for (std::size_t step = 0; step < ranks; ++step) {
      sparse_vector<Value> const& part = parts[(owner + ranks - step) % ranks];
      for (std::size_t i = 0; i < part.indices.size(); ++i) {
        if (part.indices[i] >= begin && part.indices[i] < boundaries[owner + 1]) {
          auto const at = static_cast<std::size_t>(part.indices[i] - begin);
          region[at] = add(region[at], part.values[i]);
          touched[at] = true;
        }
      }
    }
    for (std::size_t i = 0; i < region.size(); ++i) {
      if (touched[i]) {
        sums.push_back(begin + static_cast<std::int64_t>(i), region[i]);
      }
    }
  }
  return sums;
}

} // namespace oktopk_tests
