// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/select/kth_magnitude.hpp>
#include <oktopk/select/take_above.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace oktopk {

namespace detail {

/// Where the k-th magnitude is looked for across ranks: as far from the last one as it has moved of late.
template <gradient_value Value>
magnitude_range<Value> range_around(kth_guess<Value> const& guess) {
  bits_of<Value> const middle = magnitude_bits(guess.magnitude);
  int const bits = std::min(static_cast<int>(guess.bits), magnitude_bit_count<Value> - 1);
  bits_of<Value> const reach = bits_of<Value>(1) << (bits - 1);
  return {middle > reach ? middle - reach : 0, bits};
}

/// The next guess across ranks: four times the last move is in reach at once, and reach is given up bit by bit.
template <gradient_value Value>
kth_guess<Value> guess_across(kth_guess<Value> const& guess, bits_of<Value> found) {
  constexpr int least = 12;
  constexpr int most = kth_guess<Value>::most_bits;
  bits_of<Value> const last = magnitude_bits(guess.magnitude);
  bits_of<Value> const moved = found > last ? found - last : last - found;
  int bits = least;
  while (bits < most && (moved >> (bits - 3)) != 0) {
    bits += 1;
  }
  int const kept = guess.bits > 0 ? std::min(static_cast<int>(guess.bits) - 1, most) : most;
  return {magnitude_from_bits<Value>(found), static_cast<signed_bits_of<Value>>(std::max(bits, kept))};
}

/// Writes the patterns of this rank's candidates in the bracket to the host's numbers, in the order of their indices;
/// never more of them than `bracket.inside`.
template <execution_space E, gradient_index Index, gradient_value Value>
void list_inside(E const& exec, candidates<Index, Value, typename E::memory_space> from, kth_bracket<Value> bracket,
                 selection_workspace<Index, Value, E>& workspace) {
  std::int64_t const room = bracket.inside;
  workspace.numbers.reserve(exec, room); // allocates nothing where the bracket was made for the room that there is
  std::int64_t* const out = workspace.numbers.device().data();
  Kokkos::parallel_scan(
      "oktopk::select::list_inside", detail::index_range<E>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        auto const magnitude = magnitude_bits(from.values.data()[i]);
        if (bracket.holds(magnitude)) {
          if (final && position < room) {
            out[position] = static_cast<std::int64_t>(magnitude);
          }
          position += 1;
        }
      });
  workspace.numbers.to_host(exec, room, "oktopk::select::list_inside");
}

/// Which of all ranks' undecided candidates belong to the k largest: the k-th magnitude, and for each rank how many it
/// keeps, of them how many with that magnitude.
template <gradient_value Value>
struct decision {
  bits_of<Value> threshold = 0;
  std::int64_t my_ties = 0;
  std::int64_t my_kept_ties = 0;
};

/// Decides, the same on every rank. A row a rank: its candidates above the bracket, how many it has inside, and their
/// patterns unless they are all the same. Replaces each row's first number by what the rank keeps.
template <gradient_value Value>
decision<Value> decide(kth_bracket<Value> const& bracket, std::span<std::int64_t> rows, std::size_t width, int rank,
                       std::vector<std::int64_t>& undecided) {
  std::int64_t threshold = static_cast<std::int64_t>(bracket.floor);
  std::int64_t wanted_ties = bracket.wanted;
  bool const listed = bracket.shift > 0 && bracket.inside_total > 0;
  if (listed) {
    undecided.clear();
    for (std::size_t row = 0; row < rows.size(); row += width) {
      auto const first = rows.begin() + static_cast<std::ptrdiff_t>(row) + 2;
      undecided.insert(undecided.end(), first, first + static_cast<std::ptrdiff_t>(rows[row + 1]));
    }
    auto const place = undecided.begin() + static_cast<std::ptrdiff_t>(std::max<std::int64_t>(bracket.wanted, 1) - 1);
    std::nth_element(undecided.begin(), place, undecided.end(), std::greater<>());
    threshold = *place;
    wanted_ties -= std::count_if(undecided.begin(), place, [&](std::int64_t each) { return each > threshold; });
  }
  decision<Value> result;
  result.threshold = static_cast<bits_of<Value>>(threshold);
  for (std::size_t row = 0; row < rows.size(); row += width) {
    auto const inside = rows.subspan(row + 2, listed ? static_cast<std::size_t>(rows[row + 1]) : 0);
    std::int64_t const ties = listed ? std::count(inside.begin(), inside.end(), threshold) : rows[row + 1];
    std::int64_t const above =
        std::count_if(inside.begin(), inside.end(), [&](std::int64_t each) { return each > threshold; });
    std::int64_t const kept = std::min(ties, wanted_ties);
    wanted_ties -= kept;
    rows[row] += above + kept;
    if (static_cast<std::size_t>(rank) == row / width) {
      result.my_ties = ties;
      result.my_kept_ties = kept;
    }
  }
  return result;
}

/// Selects exactly min(k, candidates in the scope) entries across ranks, each with the candidates of its own region;
/// ends with `scope.share_known`. Gives the pattern of the k-th magnitude.
///
/// Histograms of a range around the last k-th magnitude bracket it (and of everything only where that missed); as soon
/// as the bracket holds few candidates everybody tells everybody theirs, together with the sizes that the ranks must
/// know of each other anyway. The guess is the same on all ranks.
template <execution_space E, gradient_index Index, gradient_value Value, selection_scope Scope>
bits_of<Value> select_across(E const& exec, candidates<Index, Value, typename E::memory_space> from, std::int64_t k,
                             kth_guess<Value>& guess, Scope& scope, selection_workspace<Index, Value, E>& workspace,
                             selected& result) {
  result = {};
  result.reevaluated = true;
  if (k == 0) {
    result.total = scope.share(0);
    return 0;
  }
  std::int64_t const few = scope.few(k);
  workspace.numbers.reserve(exec, few);
  workspace.row.reserve(2 + static_cast<std::size_t>(few));
  workspace.undecided.reserve(static_cast<std::size_t>(few));
  kth_bracket<Value> bracket;
  if (guess.bits > 0) {
    bracket = bracket_kth(exec, from, k, scope, workspace, range_around(guess), few);
  }
  if (!bracket.found) {
    bracket = bracket_kth(exec, from, k, scope, workspace, magnitude_range<Value>{}, few);
    guess.bits = 0;
  }
  workspace.row.assign({bracket.above, bracket.inside});
  if (bracket.shift > 0) {
    list_inside(exec, from, bracket, workspace);
    std::int64_t const* const listed = workspace.numbers.host();
    workspace.row.insert(workspace.row.end(), listed, listed + bracket.inside);
    workspace.row.resize(2 + static_cast<std::size_t>(bracket.inside_total));
  }
  std::size_t const width = workspace.row.size();
  std::span<std::int64_t> const rows = scope.gather_rows(workspace.row);
  auto const decided = decide<Value>(bracket, rows, width, scope.rank(), workspace.undecided);
  result.count = take_above(exec, from, decided.threshold, decided.my_kept_ties,
                            decided.my_kept_ties == decided.my_ties, k, workspace);
  result.total = scope.share_known(rows, width);
  guess = guess_across(guess, decided.threshold);
  return decided.threshold;
}

} // namespace detail

} // namespace oktopk
