// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/options.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/exact.hpp>
#include <oktopk/select/kernel/compact.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>
#include <limits>

namespace oktopk {

namespace detail {

/// The plan of a selection by chunks: the number of entries that each chunk gives, and where they are written.
struct chunk_shares {
  std::int64_t length = 0; ///< of the vector
  std::int64_t chunk = 1;  ///< values in a whole chunk
  std::int64_t whole = 0;  ///< number of whole chunks
  std::int64_t base = 0;   ///< entries that a whole chunk gives at least
  std::int64_t extra = 0;  ///< how many whole chunks give one more; they lie evenly among the others
  std::int64_t last = 0;   ///< entries that the shorter chunk at the end gives

  /// `chunk` times 2^31 must not be less than the length.
  KOKKOS_INLINE_FUNCTION std::int64_t chunks() const { return whole + (whole * chunk < length ? 1 : 0); }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t which) const { return which * chunk; }
  KOKKOS_INLINE_FUNCTION std::int64_t end(std::int64_t which) const {
    return which < whole ? (which + 1) * chunk : length;
  }

  /// Entries of all chunks before, for a chunk up to `whole`.
  KOKKOS_INLINE_FUNCTION std::int64_t offset(std::int64_t which) const {
    return which * base + (extra > 0 ? which * extra / whole : 0);
  }
  KOKKOS_INLINE_FUNCTION std::int64_t wanted(std::int64_t which) const {
    return which < whole ? offset(which + 1) - offset(which) : last;
  }

  std::int64_t total() const { return offset(whole) + last; }

  /// The first position of values that may lie in a chunk without a share: 0, the beginning of the shorter chunk, or
  /// the length.
  std::int64_t first_without_share() const { return whole > 0 && base == 0 ? 0 : last == 0 ? whole * chunk : length; }
};

/// The same number from every chunk; from one that is shorter than that, all it has.
inline chunk_shares same_shares(std::int64_t length, std::int64_t chunk, std::int64_t per_chunk) {
  std::int64_t const whole = length / chunk;
  return {length, chunk, whole, per_chunk, 0, std::min(per_chunk, length - whole * chunk)};
}

/// k entries in all, k at most the length: from each chunk in proportion to its values, whole chunks within one.
inline chunk_shares proportional_shares(std::int64_t length, std::int64_t chunk, std::int64_t k) {
  std::int64_t const whole = length / chunk;
  std::int64_t const rest = length - whole * chunk;
  std::int64_t const last = rest > 0 ? k * rest / length : 0;
  if (whole == 0) {
    return {length, chunk, 0, 0, 0, last};
  }
  return {length, chunk, whole, (k - last) / whole, (k - last) % whole, last};
}

// The largest of each chunk where threads are many: a team for each chunk.

/// The kernel of one team. A chunk is read once for each bit of the magnitude that it must find, out of the cache.
template <execution_space E, selection_source Source>
struct chunk_by_team {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;
  using bits = bits_of<value_type>;
  using team_type = typename Kokkos::TeamPolicy<E>::member_type;

  Source from;
  chunk_shares shares;
  index_type* indices;
  value_type* values;

  KOKKOS_INLINE_FUNCTION void operator()(team_type const& team) const {
    std::int64_t const which = team.league_rank();
    std::int64_t const begin = shares.begin(which);
    std::int64_t const size = shares.end(which) - begin;
    std::int64_t const wanted = shares.wanted(which);
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, size), [&](std::int64_t i) { from.load(begin + i); });
    team.team_barrier();
    if (wanted == 0) {
      return;
    }
    // The largest pattern that at least `wanted` values reach.
    bits threshold = 0;
    std::int64_t reaching = size;
    for (int bit = magnitude_bit_count<value_type> - 1; bit >= 0 && reaching > wanted; --bit) {
      bits const higher = threshold | (bits(1) << bit);
      std::int64_t const count = count_reaching(team, begin, size, higher);
      if (count >= wanted) {
        threshold = higher;
        reaching = count;
      }
    }
    std::int64_t const ties =
        reaching == wanted ? size : wanted - count_reaching(team, begin, size, static_cast<bits>(threshold + 1));
    write(team, begin, size, threshold, ties);
  }

private:
  KOKKOS_INLINE_FUNCTION std::int64_t count_reaching(team_type const& team, std::int64_t begin, std::int64_t size,
                                                     bits pattern) const {
    std::int64_t count = 0;
    Kokkos::parallel_reduce(
        Kokkos::TeamThreadRange(team, size),
        [&](std::int64_t i, std::int64_t& sum) { sum += magnitude_bits(from.loaded(begin + i)) >= pattern ? 1 : 0; },
        count);
    team.team_barrier(); // Kokkos 3.4 lets the next reduction write where another warp still reads this one's sum
    return count;
  }

  /// Writes the values above the threshold, and the first `ties` of those equal to it.
  KOKKOS_INLINE_FUNCTION void write(team_type const& team, std::int64_t begin, std::int64_t size, bits threshold,
                                    std::int64_t ties) const {
    constexpr std::int64_t above = std::int64_t(1) << 32; // one scan counts both, each in its half
    std::int64_t const offset = shares.offset(team.league_rank());
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, size), [&](std::int64_t i, std::int64_t& before, bool final) {
      value_type const x = from.loaded(begin + i);
      bits const magnitude = magnitude_bits(x);
      if (final) {
        std::int64_t const ties_before = before % above;
        if (magnitude > threshold || (magnitude == threshold && ties_before < ties)) {
          std::int64_t const place = offset + before / above + (ties_before < ties ? ties_before : ties);
          indices[place] = from.index(begin + i);
          values[place] = x;
        }
      }
      before += magnitude > threshold ? above : magnitude == threshold ? 1 : 0;
    });
  }
};

// The largest of each chunk where threads are few: each thread takes chunks one after the other, and the values that it
// reads more than once lie in the first-level cache.

/// Loads positions [begin, end) and counts the magnitudes whose pattern is at least `reach`.
template <selection_source Source>
KOKKOS_INLINE_FUNCTION std::int64_t count_reaching(Source const& from, std::int64_t begin, std::int64_t end,
                                                   bits_of<value_of<Source>> reach) {
  std::int64_t count = 0;
  while (begin < end) {
    std::uint64_t masks[blocks_at_once];
    int const loaded = load_masks(from, begin, end, reach, masks);
    for (int block = 0; block < loaded; ++block) {
      count += popcount(masks[block]);
    }
    begin += std::int64_t(loaded) * mask_width;
  }
  return count;
}

/// Bounds of the `wanted`-th largest magnitude of some values: at least `low`, below `high`.
template <gradient_value Value>
struct rank_bracket {
  using bits = bits_of<Value>;

  std::int64_t wanted;
  std::int64_t at_low;                               ///< how many reach `low`: as many as are wanted, or more
  std::int64_t at_high = 0;                          ///< how many reach `high`: fewer
  bits low = 0;                                      ///< a pattern
  bits high = bits(1) << magnitude_bit_count<Value>; ///< a pattern, or one past all of them
  bits step = bits(1) << (std::numeric_limits<Value>::digits - 6); ///< while only one bound is near
  bool low_is_near = false;
  bool high_is_near = false;
  int turn = 0;

  /// Notes how many values reach a pattern inside the bounds.
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

  /// True if exactly the values that reach `low` are wanted, or if `low` is the magnitude itself, which has ties.
  KOKKOS_INLINE_FUNCTION bool is_closed() const { return at_low == wanted || high - low == 1; }

  /// The next pattern to try, strictly inside the bounds. It moves from a single near bound in growing steps. Then it
  /// is the one where the magnitude would be if values were spread evenly, and every third time the middle, so that the
  /// search ends soon for all values.
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

/// Loads a chunk and writes its share. Begins with a guess of the least magnitude that is selected, as a pattern, and
/// returns that magnitude, the guess for the next chunk. The result does not depend on the guess.
template <selection_source Source, selection_source Loaded>
KOKKOS_INLINE_FUNCTION bits_of<value_of<Source>>
select_chunk(Source const& from, Loaded const& loaded, chunk_shares const& shares, std::int64_t which,
             bits_of<value_of<Source>> guess, index_of<Source>* indices, value_of<Source>* values) {
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
  index_of<Source>* indices;
  value_of<Source>* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t part) const {
    std::int64_t const chunks = shares.chunks();
    bits_of<value_of<Source>> guess = infinity_bits<value_of<Source>> / 2; // of about 1
    for (std::int64_t which = chunks * part / parts; which < chunks * (part + 1) / parts; ++which) {
      guess = select_chunk(from, loaded, shares, which, guess, indices, values);
    }
  }
};

/// Loads the whole source and enqueues the writing of each chunk's share, in ascending order; the arrays have room for
/// all.
template <execution_space E, bool ByTeams = is_device<E>, selection_source Source>
void select_chunks(E const& exec, Source const& from, chunk_shares const& shares, index_of<Source>* indices,
                   value_of<Source>* values) {
  if constexpr (ByTeams) {
    // Kokkos before 3.7 chooses numbers of threads by itself with which its own scan over a team ends the program: it
    // wants a power of two (kokkos/kokkos #4146).
    Kokkos::TeamPolicy<E> const teams(exec, static_cast<int>(shares.chunks()), is_device<E> ? 128 : 1);
    Kokkos::parallel_for("oktopk::select::chunks", teams, chunk_by_team<E, Source>{from, shares, indices, values});
  } else {
    auto const loaded = from.materialized();
    std::int64_t const parts = std::min<std::int64_t>(exec.concurrency(), shares.chunks());
    using kernel = successive_chunks<Source, std::remove_const_t<decltype(loaded)>>;
    Kokkos::parallel_for("oktopk::select::chunks", index_range<E>(exec, 0, parts),
                         kernel{from, loaded, shares, parts, indices, values});
  }
}

} // namespace detail

/// The largest magnitudes of every chunk of so many values (DeMo and DisTrO, Peng et al. 2024; Templar and Psyche send
/// such selections): there is no threshold of the whole vector, so each part of it has its share.
///
/// 1. With `per_chunk`: that many of every chunk, whatever k is, unless k is 0. A shorter chunk at the end gives as
///    many, or all it has.
/// 2. Without: exactly k in all. The shorter chunk at the end, of r values, gives floor(k r / n); each whole chunk
///    gives the same number, or one more, and those with one more lie evenly among the others. With fewer entries than
///    chunks, some chunks give nothing.
///
/// In a chunk, ties go to the lower index, and values that are not finite come first. Where a chunk gives nothing and
/// has a value that is not finite, the k largest of the whole vector are selected, so that the fault is found.
///
/// Reads the values once, and again those of chunks that give nothing, to find what is not finite. Carries nothing from
/// call to call. For local selections.
struct chunked : selector_base {
  struct options {
    std::int64_t chunk = 4096;  ///< values in a chunk, 64 to 1,048,576
    std::int64_t per_chunk = 0; ///< entries of each chunk, up to `chunk`; 0 for what k asks for

    template <class Options, class Visit>
    static void each_option(Options& how, Visit& visit) {
      visit("chunk", how.chunk, "values in a chunk", between(64, 1 << 20));
      visit("per_chunk", how.per_chunk, "entries of each chunk; 0 for what k asks for");
    }
  };

  template <gradient_value Value>
  using state = detail::no_state;

  chunked() : chunked(options{}) {}
  explicit chunked(options how) : options_(how) {}

  static std::string name() { return "chunked"; }

  std::string describe() const { return detail::describe_options(name(), options_); }

  std::string problem() const {
    if (options_.chunk < 64 || options_.chunk > (1 << 20)) {
      return "chunk must be 64 to 1048576, not " + std::to_string(options_.chunk);
    }
    if (options_.per_chunk < 0 || options_.per_chunk > options_.chunk) {
      return "per_chunk must be 0 to chunk, which is " + std::to_string(options_.chunk) + ", not " +
             std::to_string(options_.per_chunk);
    }
    return {};
  }

  bool bounded() const { return options_.per_chunk == 0; }

  selection_promises promises() const {
    return bounded() ? selection_promises{.rule = describe(), .low = 1, .high = 1}
                     : selection_promises{.rule = describe()};
  }

  std::int64_t capacity(std::int64_t k, std::int64_t length) const {
    return k > 0 ? shares(std::min(k, length), length).total() : 0;
  }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>&) const {
    auto const& [exec, k, iteration, group, workspace] = context;
    std::int64_t const size = source.size();
    if (k <= 0 || size == 0) {
      source.materialize(exec);
      return {workspace.entries(0), group.gather_counts(0), true};
    }
    auto const each = shares(std::min(k, size), size);
    std::int64_t count = each.total();
    workspace.reserve(exec, std::max<std::int64_t>(count, 1));
    detail::select_chunks(exec, source, each, workspace.indices.data(), workspace.values.data());
    auto const loaded = source.materialized();
    std::int64_t const overlooked = size - each.first_without_share(); // values that no chunk looked for
    array_ref<Value const, typename E::memory_space> const rest(loaded.values.data() + size - overlooked,
                                                                static_cast<std::size_t>(overlooked));
    if (overlooked > 0 && detail::first_non_finite<E, Value>(exec, rest) < overlooked) {
      count = detail::largest_entries<E, Index, Value>(exec, loaded, k, workspace).size();
    }
    detail::fence(exec, "oktopk::select::chunks");
    return {workspace.entries(count), group.gather_counts(count), true};
  }

private:
  detail::chunk_shares shares(std::int64_t k, std::int64_t length) const {
    return options_.per_chunk > 0 ? detail::same_shares(length, options_.chunk, options_.per_chunk)
                                  : detail::proportional_shares(length, options_.chunk, k);
  }

  options options_;
};

} // namespace oktopk
