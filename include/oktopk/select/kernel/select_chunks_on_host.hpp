// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/instance.hpp>
#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/select/kernel/chunk_shares.hpp>
#include <oktopk/select/kernel/compact_on_host.hpp>
#include <oktopk/select/kernel/magnitude_filter.hpp>
#include <oktopk/select/source.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

// The largest of each chunk where threads are few: each thread goes through chunks one after the other, and what it
// looks at more than once lies in the first cache.
namespace oktopk::detail {

/// Loads positions [begin, end) and counts the magnitudes whose pattern is at least `reach`.
template <selection_source Source>
KOKKOS_INLINE_FUNCTION std::int64_t count_reaching(Source const& from, std::int64_t begin, std::int64_t end,
                                                   bits_of<typename Source::value_type> reach) {
  std::int64_t count = 0;
  std::int64_t i = begin;
  while (i + mask_width <= end) {
    std::int64_t const whole = (end - i) / mask_width;
    int const blocks = whole < blocks_at_once ? static_cast<int>(whole) : blocks_at_once;
    std::uint64_t masks[blocks_at_once];
    from.load_blocks(i, blocks, reach, masks);
    for (int block = 0; block < blocks; ++block) {
      count += popcount(masks[block]);
    }
    i += std::int64_t(blocks) * mask_width;
  }
  for (; i < end; ++i) {
    count += magnitude_bits(from.load(i)) >= reach ? 1 : 0;
  }
  return count;
}

/// What is known of the `wanted`-th largest magnitude of some values: at least `low`, below `high`.
template <gradient_value Value>
struct rank_bracket {
  using bits = bits_of<Value>;

  std::int64_t wanted;
  std::int64_t at_low;                               ///< how many reach `low`: as many as are wanted, or more
  std::int64_t at_high = 0;                          ///< how many reach `high`: fewer
  bits low = 0;                                      ///< a pattern
  bits high = bits(1) << magnitude_bit_count<Value>; ///< a pattern, or one past all of them
  bits step = bits(1) << (std::numeric_limits<Value>::digits - 6); ///< where only one side is near
  bool low_is_near = false;
  bool high_is_near = false;
  int turn = 0;

  /// Notes how many reach a pattern inside.
  KOKKOS_INLINE_FUNCTION void learn(bits pattern, std::int64_t count) {
    if (count >= wanted) {
      low = pattern;
      at_low = count;
      low_is_near = true;
    } else {
      high = pattern;
      at_high = count;
      high_is_near = true;
    }
  }

  /// Whether all that reach `low` and no others are wanted, or `low` is the magnitude itself, which has ties.
  KOKKOS_INLINE_FUNCTION bool is_closed() const { return at_low == wanted || high - low == 1; }

  /// The next pattern to look at: strictly inside. From a single side in growing steps; then where the magnitude is if
  /// they lie evenly, and every third time half-way, so that it ends soon wherever they lie.
  KOKKOS_INLINE_FUNCTION bits next() {
    bits const width = high - low;
    bits ahead = width / 2;
    if (low_is_near != high_is_near) {
      ahead = low_is_near ? step : (step < width ? width - step : 1);
      step = step < width / 4 ? 4 * step : width / 2;
    } else if (low_is_near && ++turn % 3 != 0) {
      double const share = (static_cast<double>(at_low - wanted) + 0.5) / static_cast<double>(at_low - at_high);
      ahead = static_cast<bits>(static_cast<double>(width) * share);
    }
    return low + (ahead < 1 ? 1 : ahead >= width ? width - 1 : ahead);
  }
};

/// Loads a chunk and writes its share. Begins with a guess of the least magnitude that is taken, as a pattern, and
/// gives that magnitude, the guess for the next chunk. The result does not depend on the guess.
template <selection_source Source, selection_source Loaded>
KOKKOS_INLINE_FUNCTION bits_of<typename Source::value_type>
select_chunk(Source const& from, Loaded const& loaded, chunk_shares const& shares, std::int64_t which,
             bits_of<typename Source::value_type> guess, typename Source::index_type* indices,
             typename Source::value_type* values) {
  using value_type = typename Source::value_type;
  std::int64_t const begin = shares.begin(which);
  std::int64_t const end = shares.end(which);
  rank_bracket<value_type> bracket{shares.wanted(which), end - begin};
  std::int64_t const reaching = count_reaching(from, begin, end, guess);
  if (bracket.wanted == 0) {
    return guess;
  }
  if (!bracket.is_closed()) {
    bracket.learn(guess, reaching);
  }
  while (!bracket.is_closed()) {
    auto const pattern = bracket.next();
    bracket.learn(pattern, count_reaching(loaded, begin, end, pattern));
  }
  magnitude_filter<value_type> kept{bracket.low};
  if (bracket.at_low > bracket.wanted) { // ties to the lower index
    std::int64_t left = bracket.wanted - bracket.at_high;
    for (kept.last_tie = begin - 1; left > 0;) {
      kept.last_tie += 1;
      left -= magnitude_bits(loaded.loaded(kept.last_tie)) == bracket.low ? 1 : 0;
    }
  }
  std::int64_t const offset = shares.offset(which);
  compact_range(loaded, kept, begin, end, indices + offset, values + offset, bracket.wanted, false);
  return bracket.low;
}

/// One thread's part of the chunks, one after the other. A functor, since tests run it on devices, too.
template <selection_source Source, selection_source Loaded>
struct successive_chunks {
  Source from;
  Loaded loaded;
  chunk_shares shares;
  std::int64_t parts;
  typename Source::index_type* indices;
  typename Source::value_type* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t part) const {
    std::int64_t const chunks = shares.chunks();
    bits_of<typename Source::value_type> guess = infinity_bits<typename Source::value_type> / 2; // of about 1
    for (std::int64_t which = chunks * part / parts; which < chunks * (part + 1) / parts; ++which) {
      guess = select_chunk(from, loaded, shares, which, guess, indices, values);
    }
  }
};

/// Loads the whole source and writes the share of each chunk, in ascending order. There must be room for all.
template <execution_space E, selection_source Source>
void select_chunks_on_host(E const& exec, Source const& from, chunk_shares shares, typename Source::index_type* indices,
                           typename Source::value_type* values) {
  auto const loaded = from.materialized();
  std::int64_t const parts = std::min<std::int64_t>(exec.concurrency(), shares.chunks());
  successive_chunks<Source, std::remove_const_t<decltype(loaded)>> const kernel{from,  loaded,  shares,
                                                                                parts, indices, values};
  Kokkos::parallel_for("oktopk::select::chunks", index_range<E>(exec, 0, parts), kernel);
}

} // namespace oktopk::detail
