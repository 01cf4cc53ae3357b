// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/collect.hpp"
#include "support/generators.hpp"

#include <oktopk/core/sparse.hpp>
#include <oktopk/format/coo.hpp>
#include <oktopk/partition/regions.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

// Sparse vectors in parts, one per rank, whose indices ascend from rank to rank.
namespace oktopk_tests {

inline constexpr std::int64_t length_of_parts = 1 << 20;

/// Entries in the execution space's memory, and a reference to them.
template <class Format>
struct device_part {
  using index_type = typename Format::index_type;
  using value_type = typename Format::value_type;

  explicit device_part(sparse_vector<value_type> const& part)
      : indices(to_view(std::vector<index_type>(part.indices.begin(), part.indices.end()))),
        values(to_view(part.values)), entries(indices.data(), values.data(), part.size()) {}

  Kokkos::View<index_type*, memory> indices;
  Kokkos::View<value_type*, memory> values;
  oktopk::sparse_ref<index_type, value_type, memory> entries;
};

/// Contiguous regions with these boundaries, which may be of any load.
inline oktopk::regions<execution> regions_of(std::vector<std::int64_t> const& boundaries) {
  oktopk::regions<execution> made;
  made.assign(execution(), boundaries, 1, std::numeric_limits<double>::infinity(), false);
  return made;
}

template <class Value>
sparse_vector<Value> joined(std::vector<sparse_vector<Value>> const& parts) {
  sparse_vector<Value> all;
  for (auto const& part : parts) {
    all.indices.insert(all.indices.end(), part.indices.begin(), part.indices.end());
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
  return all;
}

/// Sizes of 1 to 17 parts: even ones, empty ones, a few large ones, one that has everything.
inline std::vector<std::int64_t> random_sizes(std::uint64_t seed) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(number_in(1, 17, noise(seed, 0))));
  std::int64_t const most = number_in(0, 60, noise(seed, 1));
  std::int64_t const kind = number_in(0, 3, noise(seed, 2));
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    auto const draw = noise(seed, 3, rank);
    bool const empty = (kind == 1 && draw % 4 != 0) || kind == 2;
    sizes[rank] = empty ? 0 : number_in(0, most, draw / 16) * (kind == 3 && draw % 3 == 0 ? 10 : 1);
  }
  if (kind == 2) {
    sizes[noise(seed, 4) % sizes.size()] = number_in(0, 500, noise(seed, 5));
  }
  return sizes;
}

/// Parts of these sizes with random values at random places.
template <class Value>
std::vector<sparse_vector<Value>> random_parts(std::vector<std::int64_t> const& sizes, std::uint64_t seed) {
  std::vector<sparse_vector<Value>> parts(sizes.size());
  std::int64_t index = 0;
  std::uint64_t drawn = 0;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    for (std::int64_t i = 0; i < sizes[rank]; ++i) {
      index += number_in(1, 20, noise(seed, 6, ++drawn));
      parts[rank].push_back(index, static_cast<Value>(heavy_tailed(noise(seed, 7, drawn))));
    }
  }
  return parts;
}

} // namespace oktopk_tests
