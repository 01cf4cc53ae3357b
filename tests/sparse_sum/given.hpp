// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/catch.hpp"
#include "support/collect.hpp"
#include "support/seeded.hpp"

#include <oktopk/sparse_sum.hpp>

#include <cstring>
#include <map>

// Entries that ranks give to a sum of sparse vectors, and the sum that must come out.
namespace oktopk_tests {

/// What a rank gives: a row of values for each index.
template <class Index, class Value>
struct given {
  std::vector<Index> indices;
  std::vector<Value> values;
};

/// How the entries of a world lie.
enum class entries_lie : std::uint8_t {
  anywhere,     ///< in any order, some of them several times; every third rank has none
  ascending,    ///< each once, more of them near the front
  in_one_place, ///< all of them, many times
  everywhere,   ///< every rank has the whole vector
  on_one_rank,  ///< in any order
  nowhere,      ///< nobody has any
};

inline constexpr entries_lie all_ways_to_lie[] = {entries_lie::anywhere,     entries_lie::ascending,
                                                  entries_lie::in_one_place, entries_lie::everywhere,
                                                  entries_lie::on_one_rank,  entries_lie::nowhere};

template <class Value>
Value drawn_value(seeded& draw) {
  if constexpr (std::integral<Value>) {
    return static_cast<Value>(draw.below(2000) - 1000);
  } else if constexpr (std::floating_point<Value>) {
    return static_cast<Value>((draw.uniform() - 0.5) * std::pow(2.0, static_cast<double>(draw.below(20))));
  } else {
    auto const real = drawn_value<typename Value::value_type>(draw);
    return Value(real, drawn_value<typename Value::value_type>(draw));
  }
}

/// What rank `rank` of a world gives in a call.
template <class Index, class Value>
given<Index, Value> entries_of_rank(entries_lie how, std::int64_t length, std::int64_t width, int rank,
                                    std::uint64_t call = 0) {
  given<Index, Value> made;
  seeded draw(1 + call * 1000 + static_cast<std::uint64_t>(rank) * 17 + static_cast<std::uint64_t>(how) * 7919);
  auto const add = [&](std::int64_t index) {
    made.indices.push_back(static_cast<Index>(index));
    for (std::int64_t j = 0; j < width; ++j) {
      made.values.push_back(drawn_value<Value>(draw));
    }
  };
  std::int64_t const some = std::min<std::int64_t>(length / 3, 60) + draw.below(5);
  switch (how) {
  case entries_lie::anywhere:
    for (std::int64_t i = 0; i < (rank % 3 == 2 ? 0 : some); ++i) {
      add(draw.below(length));
    }
    break;
  case entries_lie::ascending:
    for (std::int64_t i = 0; i < length; i += 1 + draw.below(2 + i / 4)) {
      add(i);
    }
    break;
  case entries_lie::in_one_place:
    for (std::int64_t i = 0; i < 20; ++i) {
      add(length / 2);
    }
    break;
  case entries_lie::everywhere:
    for (std::int64_t i = 0; i < length; ++i) {
      add(i);
    }
    break;
  case entries_lie::on_one_rank:
    for (std::int64_t i = 0; i < (rank == 1 ? some : 0); ++i) {
      add(draw.below(length));
    }
    break;
  case entries_lie::nowhere: break;
  }
  return made;
}

template <class Index, class Value>
using rows_by_index = std::map<Index, std::vector<Value>>;

/// The entries of a rank, those of one index added up in the order in which they are given.
template <class Index, class Value>
rows_by_index<Index, Value> merged(given<Index, Value> const& all, std::int64_t width) {
  rows_by_index<Index, Value> rows;
  for (std::size_t i = 0; i < all.indices.size(); ++i) {
    auto const* const row = all.values.data() + static_cast<std::int64_t>(i) * width;
    auto const [place, is_new] = rows.try_emplace(all.indices[i], row, row + width);
    for (std::size_t j = 0; j < static_cast<std::size_t>(width) && !is_new; ++j) {
      place->second[j] = static_cast<Value>(place->second[j] + row[j]);
    }
  }
  return rows;
}

/// The sum in its documented order: from 0, what the owner of an index has, then the rank before it, and so on.
template <class Index, class Value>
given<Index, Value> sequential_sum(std::vector<given<Index, Value>> const& all, std::int64_t width,
                                   std::vector<std::int64_t> const& boundaries) {
  std::vector<rows_by_index<Index, Value>> each;
  rows_by_index<Index, Value> sums;
  for (auto const& one : all) {
    each.push_back(merged(one, width));
    for (auto const& [index, row] : each.back()) {
      sums.try_emplace(index, static_cast<std::size_t>(width), Value(0));
    }
  }
  given<Index, Value> list;
  auto const ranks = all.size();
  for (auto& [index, sum] : sums) {
    auto const owner =
        static_cast<std::size_t>(std::ranges::upper_bound(boundaries, std::int64_t(index)) - boundaries.begin()) - 1;
    for (std::size_t step = 0; step < ranks; ++step) {
      auto const& rows = each[(owner + ranks - step) % ranks];
      auto const found = rows.find(index);
      for (std::size_t j = 0; j < sum.size() && found != rows.end(); ++j) {
        sum[j] = static_cast<Value>(sum[j] + found->second[j]);
      }
    }
    list.indices.push_back(index);
    list.values.insert(list.values.end(), sum.begin(), sum.end());
  }
  return list;
}

/// A result on the host.
template <class Entries>
auto copied(Entries const& result) {
  given<typename Entries::indices_type::non_const_value_type, typename Entries::values_type::non_const_value_type> copy;
  execution().fence();
  copy.indices = to_vector(result.indices());
  copy.values = to_vector(result.values());
  return copy;
}

/// To the bit.
template <class Index, class Value>
bool same_bits(given<Index, Value> const& a, given<Index, Value> const& b) {
  return a.indices == b.indices && a.values.size() == b.values.size() &&
         (a.values.empty() || std::memcmp(static_cast<void const*>(a.values.data()), b.values.data(),
                                          a.values.size() * sizeof(Value)) == 0);
}

} // namespace oktopk_tests
