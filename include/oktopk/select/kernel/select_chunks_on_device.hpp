// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/select/kernel/chunk_shares.hpp>
#include <oktopk/select/source.hpp>

#include <cstdint>
#include <type_traits>

// The largest of each chunk where threads are many: a team for each chunk.
namespace oktopk::detail {

/// The kernel of one team. A chunk is read once for each bit of the magnitude that it must find, out of the cache.
template <execution_space E, selection_source Source, selection_source Loaded>
struct chunk_by_team {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;
  using bits = bits_of<value_type>;
  using team_type = typename Kokkos::TeamPolicy<E>::member_type;

  Source from;
  Loaded loaded;
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
    // The largest pattern that enough of them reach.
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
        [&](std::int64_t i, std::int64_t& sum) { sum += magnitude_bits(loaded.loaded(begin + i)) >= pattern ? 1 : 0; },
        count);
    team.team_barrier(); // Kokkos 3.4 lets the next reduction write where another warp still reads this one's sum
    return count;
  }

  /// What is above the threshold, and the first `ties` of those with it.
  KOKKOS_INLINE_FUNCTION void write(team_type const& team, std::int64_t begin, std::int64_t size, bits threshold,
                                    std::int64_t ties) const {
    constexpr std::int64_t above = std::int64_t(1) << 32; // one scan counts both, each in its half
    std::int64_t const offset = shares.offset(team.league_rank());
    Kokkos::parallel_scan(Kokkos::TeamThreadRange(team, size), [&](std::int64_t i, std::int64_t& before, bool final) {
      value_type const x = loaded.loaded(begin + i);
      bits const magnitude = magnitude_bits(x);
      if (final) {
        std::int64_t const ties_before = before % above;
        if (magnitude > threshold || (magnitude == threshold && ties_before < ties)) {
          std::int64_t const place = offset + before / above + (ties_before < ties ? ties_before : ties);
          indices[place] = loaded.index(begin + i);
          values[place] = x;
        }
      }
      before += magnitude > threshold ? above : magnitude == threshold ? 1 : 0;
    });
  }
};

/// Loads the whole source and writes the share of each chunk, in ascending order. There must be room for all.
template <execution_space E, selection_source Source>
void select_chunks_on_device(E const& exec, Source const& from, chunk_shares shares,
                             typename Source::index_type* indices, typename Source::value_type* values) {
  // Kokkos before 3.7 chooses numbers of threads by itself with which its own scan over a team ends the program: it
  // wants a power of two (kokkos/kokkos #4146).
  constexpr int threads = is_device<E> ? 128 : 1;
  auto const loaded = from.materialized();
  using kernel = chunk_by_team<E, Source, std::remove_const_t<decltype(loaded)>>;
  Kokkos::parallel_for("oktopk::select::chunks",
                       Kokkos::TeamPolicy<E>(exec, static_cast<int>(shares.chunks()), threads),
                       kernel{from, loaded, shares, indices, values});
}

} // namespace oktopk::detail
