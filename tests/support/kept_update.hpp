// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace oktopk_tests {

/// A copy of an update that outlives the next call. Values are kept as bit patterns: -0 is not 0, NaN equals itself.
struct kept_update {
  std::vector<std::int64_t> indices;
  std::vector<std::uint64_t> value_bits;
  std::vector<std::int64_t> contributed;
};

/// Of an update in memory that the host can read.
template <class Update>
kept_update keep_update(Update const& update) {
  using value = typename Update::value_type;
  kept_update kept;
  for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
    kept.indices.push_back(update.indices()(i));
    kept.value_bits.push_back(__builtin_bit_cast(oktopk::detail::bits_of<value>, update.values()(i)));
  }
  for (std::size_t i = 0; i < update.contributed().extent(0); ++i) {
    kept.contributed.push_back(update.contributed()(i));
  }
  return kept;
}

/// Where two things that should be the same differ, in words; empty where they do not.
template <std::integral T>
std::string difference(T a, T b) {
  return a == b ? std::string() : ": " + std::to_string(a) + " and " + std::to_string(b);
}

template <class T>
std::string difference(std::vector<T> const& a, std::vector<T> const& b);

inline std::string difference(kept_update const& a, kept_update const& b) {
  if (auto const text = difference(a.indices, b.indices); !text.empty()) {
    return " indices" + text;
  }
  if (auto const text = difference(a.value_bits, b.value_bits); !text.empty()) {
    return " value bits" + text;
  }
  if (auto const text = difference(a.contributed, b.contributed); !text.empty()) {
    return " contributed" + text;
  }
  return {};
}

template <class T>
std::string difference(std::vector<T> const& a, std::vector<T> const& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (auto const text = difference(a[i], b[i]); !text.empty()) {
      return " at " + std::to_string(i) + text;
    }
  }
  return a.size() == b.size() ? "" : ": " + std::to_string(a.size()) + " and " + std::to_string(b.size()) + " of them";
}

} // namespace oktopk_tests
