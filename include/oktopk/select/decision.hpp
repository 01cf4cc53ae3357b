// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/error.hpp>
#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/select/kernel/digits.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace oktopk::detail {

/// Throws where a row tells of more candidates than it lists, or of numbers that are none.
inline void check_rows(std::span<std::int64_t const> rows, std::size_t width, bool listed) {
  constexpr auto countable = std::int64_t(1) << 56; // what travels in the place of a count
  for (std::size_t row = 0; row < rows.size(); row += width) {
    std::int64_t const most = listed ? static_cast<std::int64_t>(width) - 2 : countable;
    if (rows[row] < 0 || rows[row] > countable || rows[row + 1] < 0 || rows[row + 1] > most) {
      throw error(fault::damaged_message, "rank " + std::to_string(row / width) + " tells of " +
                                              std::to_string(rows[row + 1]) + " candidates, where " +
                                              std::to_string(most) + " are the most");
    }
  }
}

/// Decides which of all ranks' undecided candidates belong to the k largest, the same on every rank: the k-th
/// magnitude, and of this rank's candidates how many have it and how many of these are kept. A row a rank: its
/// candidates above the bracket, how many it has inside, and their patterns unless they are all the same. Replaces each
/// row's first number by what the rank keeps. Throws `damaged_message` for rows that no ranks can have sent.
template <gradient_value Value>
kth<Value> decide(kth_bracket<Value> const& bracket, std::span<std::int64_t> rows, std::size_t width, int rank,
                  std::vector<std::int64_t>& undecided) {
  std::int64_t threshold = static_cast<std::int64_t>(bracket.floor);
  std::int64_t wanted_ties = bracket.wanted;
  bool const listed = bracket.shift > 0 && bracket.inside_total > 0;
  check_rows(rows, width, listed);
  if (listed) {
    undecided.clear();
    for (std::size_t row = 0; row < rows.size(); row += width) {
      auto const first = rows.begin() + static_cast<std::ptrdiff_t>(row) + 2;
      undecided.insert(undecided.end(), first, first + static_cast<std::ptrdiff_t>(rows[row + 1]));
    }
    if (static_cast<std::int64_t>(undecided.size()) < std::max<std::int64_t>(bracket.wanted, 1)) {
      throw error(fault::damaged_message, "the ranks list fewer candidates than they have counted");
    }
    auto const place = undecided.begin() + static_cast<std::ptrdiff_t>(std::max<std::int64_t>(bracket.wanted, 1) - 1);
    std::nth_element(undecided.begin(), place, undecided.end(), std::greater<>());
    threshold = *place;
    wanted_ties -= std::count_if(undecided.begin(), place, [&](std::int64_t each) { return each > threshold; });
  }
  kth<Value> result;
  result.threshold = static_cast<bits_of<Value>>(threshold);
  for (std::size_t row = 0; row < rows.size(); row += width) {
    auto const inside = rows.subspan(row + 2, listed ? static_cast<std::size_t>(rows[row + 1]) : 0);
    std::int64_t const ties = listed ? std::count(inside.begin(), inside.end(), threshold) : rows[row + 1];
    std::int64_t const above =
        std::count_if(inside.begin(), inside.end(), [&](std::int64_t each) { return each > threshold; });
    std::int64_t const kept = std::clamp<std::int64_t>(wanted_ties, 0, ties);
    wanted_ties -= kept;
    rows[row] += above + kept;
    if (static_cast<std::size_t>(rank) == row / width) {
      result.ties = ties;
      result.ties_wanted = kept;
    }
  }
  return result;
}

} // namespace oktopk::detail
