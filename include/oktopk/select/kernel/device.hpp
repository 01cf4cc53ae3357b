// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/core/kokkos_ext/warp.hpp>
#include <oktopk/select/kernel/digits.hpp>
#include <oktopk/select/kernel/source.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

// The kernels of selection for devices. Only programs for one compile this header: see `OKTOPK_HAS_DEVICE`. The host's
// headers call the functions at its end, `..._on_device`, which their arguments find where `E` is a device.
namespace oktopk::detail {

// On a device each team counts a histogram in shared memory, then all add up; the last team leaves the sums zero again.

/// Adds the number of a team's candidates in each bin to `sums`. Lanes of the last bin, which has most of them, add
/// together.
template <class Warp, gradient_value Value, class Count, class Team>
KOKKOS_INLINE_FUNCTION void count_by_team(Team const& team, Value const* values, std::int64_t size, digit<Value> which,
                                          Count* sums) {
  Warp const warp = warp_in<Warp>(team);
  std::int64_t const bins = std::int64_t(1) << which.width;
  auto* const own = shared_in<std::uint32_t>(team, bins);
  for (std::int64_t bin = team.team_rank(); bin < bins; bin += team.team_size()) {
    own[bin] = 0;
  }
  team.team_barrier();
  std::int64_t const stride = static_cast<std::int64_t>(team.league_size()) * warps_in_team<Warp> * Warp::lanes;
  constexpr int rows = 4; // loads that a lane has under way at a time
  for (std::int64_t first = warp_number_in_league<Warp>(team) * Warp::lanes; first < size; first += rows * stride) {
    typename Warp::template per_lane<std::int64_t> bin[std::size_t(rows)];
    for (int row = 0; row < rows; ++row) {
      std::int64_t const begin = first + row * stride;
      warp.each([&](int lane) {
        bin[row][lane] = begin + lane < size ? which.bin(magnitude_bits(values[begin + lane])) : -1;
      });
    }
    for (int row = 0; row < rows; ++row) {
      auto const last = warp.ballot([&](int lane) { return bin[row][lane] == bins - 1; });
      warp.once([&] {
        if (last != 0) {
          Kokkos::atomic_fetch_add(&own[bins - 1], static_cast<std::uint32_t>(popcount(last)));
        }
      });
      warp.each([&](int lane) {
        if (bin[row][lane] >= 0 && bin[row][lane] < bins - 1) {
          Kokkos::atomic_fetch_add(&own[bin[row][lane]], std::uint32_t(1));
        }
      });
    }
  }
  team.team_barrier();
  for (std::int64_t bin = team.team_rank(); bin < bins; bin += team.team_size()) {
    if (own[bin] != 0) {
      Kokkos::atomic_fetch_add(&sums[bin], static_cast<Count>(own[bin]));
    }
  }
}

/// Finds the bin with the `wanted`-th candidate, counted from the top bin, notes it in the record, and clears the bins.
/// Called by all threads of one team. If there are fewer candidates, nothing is noted.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION void find_bin(Team const& team, std::uint32_t* sums, int width, selection_record& record) {
  auto* const scratch = shared_in<std::int64_t>(team, numbers_to_scan<Warp>);
  std::int64_t const bins = std::int64_t(1) << width;
  std::int64_t const share = (bins + team.team_size() - 1) / team.team_size();
  std::int64_t const first = team.team_rank() * share; // from the top
  std::int64_t const end = first + share < bins ? first + share : bins;
  std::int64_t own = 0;
  for (std::int64_t at = first; at < end; ++at) {
    own += sums[bins - 1 - at];
  }
  std::int64_t total = 0;
  std::int64_t const wanted = record.wanted;
  std::int64_t above =
      sum_before<Warp, Team, std::int64_t>(team, own, scratch, total); // all have read the record after it
  if (above < wanted && wanted <= above + own) {
    std::int64_t at = first;
    for (; above + sums[bins - 1 - at] < wanted; ++at) {
      above += sums[bins - 1 - at];
    }
    std::int64_t const bin = bins - 1 - at;
    record.wanted = wanted - above;
    record.prefix = (record.prefix << width) | bin;
    record.below_last |= bin != bins - 1 ? 1 : 0;
  }
  for (std::int64_t at = first; at < end; ++at) {
    sums[bins - 1 - at] = 0;
  }
}

/// Counts a digit. Either the host knows the digit and reads the histogram from `out`; or it is a later digit of
/// candidates that were gathered: then the record has the digits before it, and gets the bin.
template <class Warp, bool Gathered, execution_space E, gradient_value Value>
struct digit_kernel {
  using count_type = std::conditional_t<Gathered, std::uint32_t, std::int64_t>;

  Value const* values;
  std::int64_t size; ///< or the room for those that were gathered
  digit<Value> which;
  count_type* sums;
  selection_record* record;
  std::int64_t* out = nullptr;

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    digit<Value> known = which;
    std::int64_t count = size;
    if constexpr (Gathered) {
      known.prefix = static_cast<bits_of<Value>>(record->prefix);
      count = record->count <= size ? record->count : 0;
    }
    count_by_team<Warp>(team, values, count, known, sums);
    if (is_last_team(team, &record->arrived)) {
      if constexpr (Gathered) {
        find_bin<Warp>(team, sums, known.width, *record);
      } else {
        for (std::int64_t bin = team.team_rank(); bin < which.bins(); bin += team.team_size()) {
          out[bin] = sums[bin];
          sums[bin] = 0;
        }
      }
    }
  }
};

/// Enqueues the kernel for `candidates` candidates.
template <class Warp, bool Gathered, execution_space E, gradient_value Value>
void count_digit_by_teams(E const& exec, std::int64_t candidates,
                          digit_kernel<Warp, Gathered, E, Value> const& kernel) {
  std::int64_t const bins = kernel.which.bins();
  // Four candidates a thread at least; at most as many teams as a large GPU runs at a time.
  std::int64_t const teams = std::clamp<std::int64_t>(candidates / 1024, 1, 1024);
  for_teams<Warp>("oktopk::select::count_digit", exec, teams,
                  bins * std::int64_t(sizeof(std::uint32_t)) + bytes_to_scan<Warp>, // to find the bin, too
                  kernel);
}

/// The second task of the gathering pass: the histogram of the range's first digit, and the bin of the `wanted`-th
/// candidate.
template <gradient_value Value>
struct first_digit {
  digit<Value> which;
  std::int64_t wanted;
  std::uint32_t* sums;

  KOKKOS_INLINE_FUNCTION void see(bits_of<Value> magnitude) const {
    std::int64_t const bin = which.bin(magnitude);
    if (bin >= 0) {
      Kokkos::atomic_fetch_add(&sums[bin], std::uint32_t(1));
    }
  }

  template <class Warp, class Team>
  KOKKOS_INLINE_FUNCTION void finish(Team const& team, selection_record& record) const {
    if (team.team_rank() == 0) {
      record.wanted = wanted;
    }
    team.team_barrier();
    find_bin<Warp>(team, sums, which.width, record);
  }
};

// From pieces of candidates to a selection in ascending order, on a device: each piece's kept ones are counted, the
// last team adds the counts up, and a second kernel writes.

/// Pieces of an array, one for each warp: of one size, or in a list in the order of their candidates, wherever they
/// lie.
struct candidate_pieces {
  std::int64_t count = 0;
  candidate_run const* list = nullptr;
  std::int64_t size = 0;  ///< of the array, where nothing is listed
  std::int64_t width = 1; ///< of a piece

  KOKKOS_INLINE_FUNCTION candidate_run operator()(std::int64_t which) const {
    std::int64_t const begin = which * width;
    return list != nullptr ? list[which] : candidate_run{begin, begin + width < size ? width : size - begin};
  }
};

/// The rule of a selection. It keeps all candidates above a magnitude, which the host knows or kernels find in a range,
/// and a number of those with that magnitude, of the lowest indices. It keeps nothing if the magnitude was not found,
/// or if more candidates were gathered than had room.
template <gradient_value Value>
struct kept_magnitudes {
  bits_of<Value> floor = 0; ///< the magnitude, or the first of the range
  std::int64_t wanted = 0;  ///< of the ties, or of all where kernels find the magnitude
  std::int64_t capacity = every_entry;
  bool by_kernels = false;

  KOKKOS_INLINE_FUNCTION bool is_known(selection_record const& record) const {
    return record.count <= capacity && (!by_kernels || (record.count >= wanted && record.below_last != 0));
  }
  KOKKOS_INLINE_FUNCTION bits_of<Value> threshold(selection_record const& record) const {
    return floor + static_cast<bits_of<Value>>(record.prefix); // prefix 0 if no kernel searches
  }
  KOKKOS_INLINE_FUNCTION std::int64_t ties(selection_record const& record) const {
    return by_kernels ? record.wanted : wanted;
  }
};

/// What the kernels that count and write the pieces pass on. The pieces of a team's warps are neighbours; only teams get a
/// place, since one team computes all of them.
struct piece_numbers {
  std::int64_t* all;
  std::int64_t pieces;

  KOKKOS_INLINE_FUNCTION std::int64_t& above(std::int64_t piece) const { return all[piece]; }
  KOKKOS_INLINE_FUNCTION std::int64_t& ties(std::int64_t piece) const { return all[pieces + piece]; }
  /// Candidates above the threshold of a team's pieces; then the place of their first entry.
  KOKKOS_INLINE_FUNCTION std::int64_t& team_place(std::int64_t team) const { return all[2 * pieces + team]; }
  /// Ties of a team's pieces; then those of all teams before.
  KOKKOS_INLINE_FUNCTION std::int64_t& team_ties(std::int64_t team) const { return all[3 * pieces + team]; }

  /// Computes the places, and returns the number of all entries; ties first, since a team keeps as many as are still
  /// wanted. Called by all threads of one team, which must see the numbers.
  template <class Warp, class Team>
  KOKKOS_INLINE_FUNCTION std::int64_t place_teams(Team const& team, std::int64_t teams, std::int64_t wanted) const {
    auto* const scratch = shared_in<std::int64_t>(team, numbers_to_scan<Warp>);
    thread_share<Team> const mine(team, teams);
    std::int64_t own = 0;
    for (std::int64_t at = mine.begin; at < mine.end; ++at) {
      own += team_ties(at);
    }
    std::int64_t total = 0;
    std::int64_t before = sum_before<Warp, Team, std::int64_t>(team, own, scratch, total);
    for (std::int64_t at = mine.begin; at < mine.end; ++at) {
      std::int64_t const next = before + team_ties(at);
      team_place(at) += kept(next, wanted) - kept(before, wanted);
      team_ties(at) = before;
      before = next;
    }
    return exclusive_scan<Warp>(team, &team_place(0), teams, scratch); // each thread has the same share there
  }

  KOKKOS_INLINE_FUNCTION static std::int64_t kept(std::int64_t ties, std::int64_t wanted) {
    return ties < wanted ? ties : wanted;
  }
};

/// The second task of the gathering pass if all candidates that pass are kept: computes the places.
struct place_tiles {
  candidate_run const* list = nullptr;
  piece_numbers numbers;

  template <class Bits>
  KOKKOS_INLINE_FUNCTION void see(Bits) const {}

  template <class Warp, class Team>
  KOKKOS_INLINE_FUNCTION void finish(Team const& team, selection_record& record) const {
    constexpr std::int64_t width = warps_in_team<Warp>;
    std::int64_t const teams = (numbers.pieces + width - 1) / width;
    for (std::int64_t which = team.team_rank(); which < teams; which += team.team_size()) {
      std::int64_t sum = 0;
      for (std::int64_t at = which * width; at < (which + 1) * width && at < numbers.pieces; ++at) {
        numbers.above(at) = list[at].size;
        numbers.ties(at) = 0;
        sum += list[at].size;
      }
      numbers.team_place(which) = sum;
      numbers.team_ties(which) = 0;
    }
    team.team_barrier();
    std::int64_t const kept = numbers.place_teams<Warp>(team, teams, every_entry);
    if (team.team_rank() == 0) {
      record.kept = kept;
    }
  }
};

/// Counts the candidates of each piece; then the last team computes the places.
template <class Warp, execution_space E, gradient_value Value>
struct count_kept_kernel {
  candidate_pieces pieces;
  Value const* values;
  kept_magnitudes<Value> kept;
  piece_numbers numbers;
  selection_record* record;

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    if (!kept.is_known(*record)) {
      return;
    }
    Warp const warp = warp_in<Warp>(team);
    auto* const found = shared_in<std::int64_t>(team, 2 * numbers_to_scan<Warp>);
    std::int64_t const which = warp_number_in_league<Warp>(team);
    int above = 0;
    int ties = 0;
    if (which < pieces.count) {
      bits_of<Value> const threshold = kept.threshold(*record);
      candidate_run const mine = pieces(which);
      for (std::int64_t first = 0; first < mine.size; first += Warp::lanes) {
        typename Warp::template per_lane<bits_of<Value>> magnitude;
        warp.each([&](int lane) {
          magnitude[lane] = first + lane < mine.size ? magnitude_bits(values[mine.begin + first + lane]) : 0;
        });
        above += popcount(warp.ballot([&](int lane) { return magnitude[lane] > threshold; }));
        ties +=
            popcount(warp.ballot([&](int lane) { return first + lane < mine.size && magnitude[lane] == threshold; }));
      }
    }
    warp.once([&] {
      if (which < pieces.count) {
        numbers.above(which) = above;
        numbers.ties(which) = ties;
      }
      found[warp_number<Warp>(team)] = above;
      found[numbers_to_scan<Warp> + warp_number<Warp>(team)] = ties;
    });
    team.team_barrier();
    if (team.team_rank() == 0) {
      numbers.team_place(team.league_rank()) = sum_of(found, warps_in_team<Warp>);
      numbers.team_ties(team.league_rank()) = sum_of(found + numbers_to_scan<Warp>, warps_in_team<Warp>);
    }
    if (is_last_team(team, &record->arrived)) {
      std::int64_t const total = numbers.template place_teams<Warp>(team, team.league_size(), kept.ties(*record));
      if (team.team_rank() == 0) {
        record->kept = total;
      }
    }
  }
};

/// Writes the kept candidates of each piece to its place. The last team copies the record for the host, and clears it.
template <class Warp, execution_space E, selection_source Source>
struct write_kept_kernel {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;

  candidate_pieces pieces;
  Source from;
  kept_magnitudes<value_type> kept;
  piece_numbers numbers;
  index_type* indices;
  value_type* values;
  std::int64_t capacity; ///< nothing is written past it
  selection_record* record;
  selection_record* host_copy;

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    std::int64_t const which = warp_number_in_league<Warp>(team);
    if (kept.is_known(*record) && which < pieces.count) {
      write(warp_in<Warp>(team), which);
    }
    if (is_last_team(team, &record->arrived) && team.team_rank() == 0) {
      *host_copy = *record;
      *record = selection_record();
    }
  }

private:
  KOKKOS_INLINE_FUNCTION void write(Warp const& warp, std::int64_t which) const {
    bits_of<value_type> const threshold = kept.threshold(*record);
    std::int64_t const wanted = kept.ties(*record);
    candidate_run const mine = pieces(which);
    std::int64_t const team = which / warps_in_team<Warp>;
    std::int64_t out = numbers.team_place(team);
    std::int64_t ties = numbers.team_ties(team);
    for (std::int64_t before = team * warps_in_team<Warp>; before < which; ++before) {
      std::int64_t const next = ties + numbers.ties(before);
      out += numbers.above(before) + numbers.kept(next, wanted) - numbers.kept(ties, wanted);
      ties = next;
    }
    for (std::int64_t first = 0; first < mine.size; first += Warp::lanes) {
      typename Warp::template per_lane<value_type> x;
      warp.each([&](int lane) {
        x[lane] = first + lane < mine.size ? from.loaded(mine.begin + first + lane) : value_type(0);
      });
      auto const tied =
          warp.ballot([&](int lane) { return first + lane < mine.size && magnitude_bits(x[lane]) == threshold; });
      auto const passing = warp.ballot([&](int lane) {
        return magnitude_bits(x[lane]) > threshold ||
               ((tied >> lane & 1) != 0 && ties + rank_in<Warp::lanes>(tied, lane) < wanted);
      });
      warp.each([&](int lane) {
        std::int64_t const place = out + rank_in<Warp::lanes>(passing, lane);
        if ((passing >> lane & 1) != 0 && place < capacity) {
          index_type const index = from.index(mine.begin + first + lane);
          indices[place] = index;
          values[place] = x[lane];
          if (magnitude_bits(x[lane]) >= infinity_bits<value_type>) {
            Kokkos::atomic_fetch_max(&record->not_finite, every_entry - static_cast<std::int64_t>(index));
          }
        }
      });
      out += popcount(passing);
      ties += popcount(tied);
    }
  }
};

/// Enqueues the count of the kept candidates of each piece; the workspace must have device room for them.
template <class Warp, execution_space E, gradient_index Index, gradient_value Value>
void count_kept(E const& exec, candidate_pieces const& pieces, Value const* values, kept_magnitudes<Value> const& kept,
                selection_workspace<Index, Value, E> const& workspace) {
  auto const& device = workspace.on_device;
  for_teams<Warp>("oktopk::select::count_kept", exec, teams_of_warps<Warp>(pieces.count), 3 * bytes_to_scan<Warp>,
                  count_kept_kernel<Warp, E, Value>{
                      pieces, values, kept, {device.numbers.data(), pieces.count}, device.record.data()});
}

/// Writes the kept candidates, in order, no more than `capacity` entries; waits for `exec` and gives the record.
template <class Warp, execution_space E, selection_source Source>
selection_record const& write_kept(char const* label, E const& exec, candidate_pieces const& pieces, Source const& from,
                                   kept_magnitudes<value_of<Source>> const& kept, std::int64_t capacity,
                                   workspace_for<Source, E> const& workspace) {
  auto const& device = workspace.on_device;
  for_teams<Warp>("oktopk::select::write_kept", exec, teams_of_warps<Warp>(pieces.count), 0,
                  write_kept_kernel<Warp, E, Source>{pieces,
                                                     from,
                                                     kept,
                                                     {device.numbers.data(), pieces.count},
                                                     workspace.indices.data(),
                                                     workspace.values.data(),
                                                     capacity,
                                                     device.record.data(),
                                                     device.host_copy.device().data()});
  device.host_copy.to_host(exec, 1, label);
  return *device.host_copy.host();
}

// The one pass over a source on a device. Each team loads a tile, row after row of its warps' lanes, and keeps it in
// registers until it knows how many candidates pass; then it takes room for them and writes them side by side.

/// Teams that a multiprocessor of a GPU runs at a time, which bounds their registers.
inline constexpr int gathering_teams = 4;

/// Rows of a warp: loads that a lane has under way at a time, 64 bytes of them.
template <gradient_value Value>
inline constexpr int gathered_rows = 64 / sizeof(Value);

template <class Warp, gradient_value Value>
inline constexpr std::int64_t tile_width = std::int64_t(warps_in_team<Warp>) * gathered_rows<Value> * Warp::lanes;

template <class Warp, gradient_value Value>
std::int64_t tiles_of(std::int64_t size) {
  return (size + tile_width<Warp, Value> - 1) / tile_width<Warp, Value>;
}

/// The kernel. `Then` gets each candidate that fits (`see(bits)`); the last team calls `finish(team, record)`.
template <class Warp, execution_space E, selection_source Source, class Then>
struct gather_kernel {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;
  using bits = bits_of<value_type>;
  using mask_type = lane_mask<Warp::lanes>;

  static constexpr int rows = gathered_rows<value_type>;
  static constexpr int warps = warps_in_team<Warp>;
  static constexpr std::int64_t width = tile_width<Warp, value_type>;
  static_assert(rows <= Warp::lanes);

  struct staged_candidate {
    value_type value;
    std::int32_t place; ///< in the tile
  };

  /// Candidates written at a time. A GPU with 64 KiB of shared memory a multiprocessor (Turing, Pascal) has room for all of its
  /// teams, or Kokkos refuses them.
  static constexpr int staged = 8192 / sizeof(staged_candidate);

  /// The shared memory of a team.
  struct shared_scratch {
    std::int64_t target;                                        ///< where the tile is written
    std::int32_t found[std::size_t(warps)];                     ///< candidates of each warp
    std::int32_t before[std::size_t(warps)][std::size_t(rows)]; ///< candidates of a warp before each row
    mask_type masks[std::size_t(warps)][std::size_t(rows)];
    staged_candidate stage[std::size_t(staged)];
  };

  Source from;
  std::int64_t size;   ///< of the source
  bits threshold;      ///< the pattern that candidates reach
  index_type* indices; ///< candidates of a tile follow each other, tiles lie in any order
  value_type* values;
  std::int64_t capacity; ///< what does not fit is only counted
  candidate_run* tiles;
  selection_record* record;
  Then then;

  static std::int64_t shared_bytes() { return std::int64_t(sizeof(shared_scratch)) + 256; } // `then` needs a little

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    shared_scratch& shared = *shared_in<shared_scratch>(team, 1); // of all tiles
    std::int64_t const count = (size + width - 1) / width;
    for (std::int64_t which = team.league_rank(); which < count; which += team.league_size()) {
      if ((which + 1) * width <= size) {
        gather<true>(team, which, shared);
      } else {
        gather<false>(team, which, shared);
      }
    }
    if (is_last_team(team, &record->arrived)) {
      then.template finish<Warp>(team, *record);
    }
  }

private:
  template <bool Whole>
  KOKKOS_INLINE_FUNCTION void gather(team_of<E> const& team, std::int64_t which, shared_scratch& shared) const {
    std::int64_t const tile = which * width;
    Warp const warp = warp_in<Warp>(team);
    int const number = warp_number<Warp>(team);
    bits const least = threshold;
    int const first_place = number * rows * Warp::lanes; // in the tile
    std::int64_t const begin = tile + first_place;

    typename Warp::template per_lane<value_type> x[std::size_t(rows)];
    for (int row = 0; row < rows; ++row) {
      warp.each([&](int lane) {
        std::int64_t const i = begin + row * Warp::lanes + lane;
        x[row][lane] = Whole || i < size ? from.load(i) : value_type(0);
      });
    }
    typename Warp::template per_lane<bits> largest; // most lanes have nothing to write
    warp.each([&](int lane) { largest[lane] = 0; });
    for (int row = 0; row < rows; ++row) {
      mask_type const mask = warp.ballot([&](int lane) {
        std::int64_t const i = begin + row * Warp::lanes + lane;
        bits const magnitude = magnitude_bits(x[row][lane]);
        largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
        return (Whole || i < size) && magnitude >= least;
      });
      warp.once([&] { shared.masks[number][row] = mask; });
    }
    warp.sync();
    // Each lane counts one row.
    typename Warp::template per_lane<std::int32_t> counts;
    warp.each([&](int lane) { counts[lane] = lane < rows ? popcount(shared.masks[number][lane]) : 0; });
    std::int32_t const mine = warp.exclusive_scan(counts);
    warp.each([&](int lane) {
      if (lane < rows) {
        shared.before[number][lane] = counts[lane];
      }
    });
    warp.once([&] { shared.found[number] = mine; });
    team.team_barrier();
    int const before = warp.broadcast([&] { return sum_of(shared.found, number); });
    int const total = warp.broadcast([&] { return sum_of(shared.found, warps); });
    if (team.team_rank() == 0) {
      shared.target = Kokkos::atomic_fetch_add(&record->count, static_cast<std::int64_t>(total));
      tiles[which] = {shared.target, total};
    }
    team.team_barrier();
    std::int64_t const target = shared.target;
    for (int first = 0; first < total && target + total <= capacity; first += staged) { // the same in the whole team
      warp.each([&](int lane) {
        if (largest[lane] >= least) {
          mask_type const own = mask_type(1) << lane;
          for (int row = 0; row < rows; ++row) {
            mask_type const mask = shared.masks[number][row];
            if ((mask & own) != 0) {
              int const at = before + shared.before[number][row] + rank_in<Warp::lanes>(mask, lane) - first;
              if (at >= 0 && at < staged) {
                shared.stage[at] = {x[row][lane], first_place + row * Warp::lanes + lane};
              }
            }
          }
        }
      });
      team.team_barrier();
      write(team, shared.stage, total - first < staged ? total - first : staged, tile, target + first);
      team.team_barrier();
    }
  }

  KOKKOS_INLINE_FUNCTION void write(team_of<E> const& team, staged_candidate const* stage, int count, std::int64_t tile,
                                    std::int64_t target) const {
    for (int at = team.team_rank(); at < count; at += team.team_size()) {
      staged_candidate const each = stage[at];
      values[target + at] = each.value;
      indices[target + at] = from.index(tile + each.place);
      then.see(magnitude_bits(each.value));
    }
  }
};

/// Loads the whole source and gathers the candidates that reach the threshold; returns room for `most` of them. The
/// workspace must have room for as many tiles as `tiles_of` says.
template <class Warp, execution_space E, selection_source Source, class Then>
auto gather_on_device(E const& exec, Source const& from, bits_of<value_of<Source>> threshold, std::int64_t most,
                      workspace_for<Source, E>& workspace, Then const& then) {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;
  workspace.chunk_indices.reserve(exec, most);
  workspace.chunk_values.reserve(exec, most);
  gather_kernel<Warp, E, Source, Then> const kernel{from,
                                                    from.size(),
                                                    threshold,
                                                    workspace.chunk_indices.data(),
                                                    workspace.chunk_values.data(),
                                                    most,
                                                    workspace.on_device.pieces.data(),
                                                    workspace.on_device.record.data(),
                                                    then};
  // No more teams than run at a time: the end of a team costs as much as several tiles.
  std::int64_t const most_teams = gathering_teams * std::max<std::int64_t>(1, exec.concurrency() / 2048);
  for_teams<Warp, gathering_teams>("oktopk::select::gather", exec,
                                   std::min(most_teams, tiles_of<Warp, value_type>(from.size())), kernel.shared_bytes(),
                                   kernel);
  using entries = sparse_ref<index_type, value_type, typename E::memory_space>;
  return candidates<index_type, value_type, typename E::memory_space>(entries(kernel.indices, kernel.values, most));
}

/// On a device: one pass over the source, and another over the candidates that pass, which puts them in order.
template <class Warp, execution_space E, selection_source Source>
std::int64_t compact_by_teams(E const& exec, Source const& from, bits_of<value_of<Source>> threshold,
                              workspace_for<Source, E>& workspace) {
  using value_type = typename Source::value_type;
  if (from.size() == 0) {
    return 0;
  }
  std::int64_t const capacity = workspace.indices.capacity();
  std::int64_t const tiles = tiles_of<Warp, value_type>(from.size());
  auto& device = workspace.on_device;
  device.reserve(exec, tiles);
  auto const gathered = gather_on_device<Warp>(exec, from, threshold, capacity, workspace,
                                               place_tiles{device.pieces.data(), {device.numbers.data(), tiles}});
  return write_kept<Warp>("oktopk::select::compact", exec, {tiles, device.pieces.data()}, gathered,
                          {0, every_entry, capacity}, capacity, workspace)
      .count;
}

// Selections of one rank: above a threshold, and from a guess of it. The host gets the results when they
// are complete; until then kernels pass their results on by a `selection_record`.

// `kept` counts the entries that did not fit, too.
template <gradient_value Value>
written_selection<Value> written_by(selection_record const& record) {
  std::int64_t const not_finite = record.not_finite == 0 ? -1 : every_entry - record.not_finite;
  return {record.count, false, 0, record.kept, true, not_finite};
}

/// Loads the whole source and writes the k largest of it, ties to the lower index, if at least k and at most `most`
/// candidates reach the guess and the k-th is no more than about twice as large. Reads the source once, and what
/// reaches the guess about four times; a launch for each, and one wait. k must be positive, and `most` below 2^32.
template <class Warp, execution_space E, selection_source Source>
written_selection<value_of<Source>> select_near_guess(E const& exec, Source const& source, std::int64_t k,
                                                      value_of<Source> guess, std::int64_t most,
                                                      workspace_for<Source, E>& workspace) {
  using value_type = typename Source::value_type;
  auto& device = workspace.on_device;
  std::int64_t const tiles = tiles_of<Warp, value_type>(source.size());
  workspace.reserve(exec, k);
  device.reserve(exec, tiles);
  device.sums_u32.reserve(exec, std::int64_t(1) << widest_shared_digit);

  magnitude_range<value_type> const range{magnitude_bits(guess), std::numeric_limits<value_type>::digits};
  digit<value_type> which{range, 0, range.bits - widest_shared_digit, widest_shared_digit};
  auto const gathered = gather_on_device<Warp>(exec, source, range.floor, most, workspace,
                                               first_digit<value_type>{which, k, device.sums_u32.data()});
  while (which.shift > 0) {
    which.width = std::min(which.shift, widest_shared_digit);
    which.shift -= which.width;
    count_digit_by_teams(exec, k + k / 4,
                         digit_kernel<Warp, true, E, value_type>{gathered.values.data(), most, which,
                                                                 device.sums_u32.data(), device.record.data()});
  }
  candidate_pieces const pieces{tiles, device.pieces.data()};
  kept_magnitudes<value_type> const kept{range.floor, k, most, true};
  count_kept<Warp>(exec, pieces, gathered.values.data(), kept, workspace);
  auto const& record = write_kept<Warp>("oktopk::select::near_guess", exec, pieces, gathered, kept, k, workspace);
  auto result = written_by<value_type>(record);
  result.found = kept.is_known(record);
  result.threshold = kept.threshold(record);
  return result;
}

/// The pieces for `select_above_threshold`: few rows for a warp, so that warps are many where candidates are few.
template <class Warp>
candidate_pieces pieces_above_threshold(std::int64_t candidates) {
  constexpr std::int64_t width = std::int64_t(4) * Warp::lanes;
  return {(candidates + width - 1) / width, nullptr, candidates, width};
}

/// Writes the candidates above a threshold, and the first `ties` with it, to a workspace that has room for `capacity`.
template <class Warp, execution_space E, gradient_index Index, gradient_value Value>
written_selection<Value> select_above_threshold(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                                bits_of<Value> threshold, std::int64_t ties, std::int64_t capacity,
                                                selection_workspace<Index, Value, E>& workspace) {
  workspace.reserve(exec, capacity);
  if (from.size() == 0) {
    return {};
  }
  candidate_pieces const pieces = pieces_above_threshold<Warp>(from.size());
  workspace.on_device.reserve(exec, pieces.count);
  kept_magnitudes<Value> const kept{threshold, ties};
  count_kept<Warp>(exec, pieces, from.values.data(), kept, workspace);
  return written_by<Value>(
      write_kept<Warp>("oktopk::select::above_threshold", exec, pieces, from, kept, capacity, workspace));
}

// What selection calls where `E` is a device: the same with the warps of its hardware.

template <execution_space E, gradient_index Index, gradient_value Value>
void count_digit_on_device(E const& exec, array_ref<Value const, typename E::memory_space> values, digit<Value> which,
                           selection_workspace<Index, Value, E>& workspace) {
  auto const size = static_cast<std::int64_t>(values.extent(0));
  count_digit_by_teams(
      exec, size,
      digit_kernel<warp_of<E>, false, E, Value>{values.data(), size, which, workspace.on_device.sums.data(),
                                                workspace.on_device.record.data(), workspace.numbers.device().data()});
}

template <execution_space E, selection_source Source>
std::int64_t compact_on_device(E const& exec, Source const& from, bits_of<value_of<Source>> threshold,
                               workspace_for<Source, E>& workspace) {
  return compact_by_teams<warp_of<E>>(exec, from, threshold, workspace);
}

template <execution_space E, selection_source Source>
written_selection<value_of<Source>> select_near_guess_on_device(E const& exec, Source const& source, std::int64_t k,
                                                                value_of<Source> guess, std::int64_t most,
                                                                workspace_for<Source, E>& workspace) {
  return select_near_guess<warp_of<E>>(exec, source, k, guess, most, workspace);
}

template <execution_space E, gradient_index Index, gradient_value Value>
written_selection<Value>
select_above_threshold_on_device(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                 bits_of<Value> threshold, std::int64_t ties, std::int64_t capacity,
                                 selection_workspace<Index, Value, E>& workspace) {
  return select_above_threshold<warp_of<E>>(exec, from, threshold, ties, capacity, workspace);
}

/// Makes room for `select_above_threshold_on_device` with up to `most` candidates.
template <execution_space E, gradient_index Index, gradient_value Value>
void reserve_on_device(E const& exec, std::int64_t most, selection_workspace<Index, Value, E>& workspace) {
  workspace.on_device.reserve(exec, pieces_above_threshold<warp_of<E>>(most).count);
}

} // namespace oktopk::detail
