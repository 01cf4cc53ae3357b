// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#pragma once

#include "support/catch.hpp"
#include "support/reference.hpp"
#include "support/seeded.hpp"

/// A struct `name` that is `base` but for one member, which hides that of `base`, and the assertion that `refused<name>`.
#define DEFECT(refused, name, base, ...)                                                                               \
  struct name : base {                                                                                                 \
    using base::base;                                                                                                  \
    __VA_ARGS__;                                                                                                       \
  };                                                                                                                   \
  static_assert(refused<name>)

namespace oktopk_tests {

/// A policy that can be copied and made from its options, and nothing else.
template <class Policy>
struct strict : Policy {
  explicit strict(typename Policy::options how) : Policy(how) {}
  strict(strict const&) = default;
  strict& operator=(strict const&) = delete;
};

/// The entries of an update.
template <class Update>
auto sums_in(Update const& update) {
  sparse_vector<typename Update::value_type> got;
  for (std::size_t i = 0; i < update.indices().extent(0); ++i) {
    got.push_back(update.indices()(i), update.values()(i));
  }
  return got;
}

/// What each rank selects of its whole numbers by `select(entries)`.
template <class Value, class Select>
std::vector<sparse_vector<Value>> selections(int ranks, std::int64_t length, Select const& select) {
  std::vector<sparse_vector<Value>> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    auto const accumulator = seeded_whole_numbers<Value>(length, rank);
    parts.push_back(select(all_entries(std::vector<Value>(accumulator.data(), accumulator.data() + length))));
  }
  return parts;
}

/// Their sums, which are exact.
template <class Value>
sparse_vector<Value> sums_of(std::vector<sparse_vector<Value>> const& parts, std::int64_t length) {
  std::vector<std::int64_t> boundaries(parts.size() + 1, length);
  boundaries[0] = 0;
  return sum_by_regions(parts, boundaries);
}

/// What an exact ok_topk gives of these numbers.
template <class Value>
sparse_vector<Value> top_of_sums(int ranks, std::int64_t length, std::int64_t k) {
  auto const largest = [k](auto const& entries) { return top(entries, k); };
  return top(sums_of(selections<Value>(ranks, length, largest), length), k);
}

} // namespace oktopk_tests
