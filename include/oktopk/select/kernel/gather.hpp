// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/kernel/source.hpp>

#include <cstdint>

// From pieces of candidates to a selection in ascending order, on a device: each piece's kept ones are counted, the
// last team adds the counts up, and a second kernel writes.
namespace oktopk::detail {

/// Pieces of an array, one for each warp: of one size, or listed in the order of what is in them, wherever they lie.
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

/// The rule of a selection: it keeps all above a magnitude, which the host knows or kernels find in a range, and so many
/// of those with it, of the lowest indices; nothing where it was not found, or more was gathered than had room.
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
    return floor + static_cast<bits_of<Value>>(record.prefix); // of 0 where no kernel looks for it
  }
  KOKKOS_INLINE_FUNCTION std::int64_t ties(selection_record const& record) const {
    return by_kernels ? record.wanted : wanted;
  }
};

/// The second task of the gathering pass where all that passes is kept: finds out where each tile is written.
struct place_tiles {
  std::int64_t tiles = 0;
  candidate_run const* list = nullptr;
  std::int64_t* numbers = nullptr; ///< as of `count_kept_kernel`

  template <class Bits>
  KOKKOS_INLINE_FUNCTION void see(Bits) const {}

  template <class Warp, class Team>
  KOKKOS_INLINE_FUNCTION void finish(Team const& team, selection_record& record) const {
    auto* const scratch = shared_in<std::int64_t>(team, numbers_to_scan<Warp>);
    for (std::int64_t at = team.team_rank(); at < tiles; at += team.team_size()) {
      numbers[at] = list[at].size;
      numbers[tiles + at] = 0;
    }
    team.team_barrier();
    std::int64_t const kept = exclusive_scan<Warp>(team, numbers, tiles, scratch);
    if (team.team_rank() == 0) {
      record.kept = kept;
    }
  }
};

/// Counts what is kept of each piece, and lets the last team find out where each is written.
///
/// A piece has two numbers. First: how many of it are above the threshold, and how many have it. Then: where its first
/// entry is written, and how many ties come before it.
template <class Warp, execution_space E, gradient_value Value>
struct count_kept_kernel {
  candidate_pieces pieces;
  Value const* values;
  kept_magnitudes<Value> kept;
  std::int64_t* numbers; ///< above, of all pieces; then ties
  selection_record* record;

  KOKKOS_INLINE_FUNCTION void operator()(team_of<E> const& team) const {
    if (!kept.is_known(*record)) {
      return;
    }
    std::int64_t const which = warp_number_in_league<Warp>(team);
    std::int64_t const count = pieces.count;
    if (which < count) {
      Warp const warp = warp_in<Warp>(team);
      bits_of<Value> const threshold = kept.threshold(*record);
      candidate_run const mine = pieces(which);
      int above = 0;
      int ties = 0;
      for (std::int64_t first = 0; first < mine.size; first += Warp::lanes) {
        typename Warp::template per_lane<bits_of<Value>> magnitude;
        warp.each([&](int lane) {
          magnitude[lane] = first + lane < mine.size ? magnitude_bits(values[mine.begin + first + lane]) : 0;
        });
        above += popcount(warp.ballot([&](int lane) { return magnitude[lane] > threshold; }));
        ties +=
            popcount(warp.ballot([&](int lane) { return first + lane < mine.size && magnitude[lane] == threshold; }));
      }
      warp.once([&] {
        numbers[which] = above;
        numbers[count + which] = ties;
      });
    }
    if (is_last_team(team, &record->arrived)) {
      // Ties first: of a piece so many are kept as are still wanted.
      auto* const scratch = shared_in<std::int64_t>(team, numbers_to_scan<Warp>);
      std::int64_t* const all_ties = numbers + count;
      std::int64_t const wanted = kept.ties(*record);
      std::int64_t const ties = exclusive_scan<Warp>(team, all_ties, count, scratch);
      team.team_barrier();
      for (std::int64_t at = team.team_rank(); at < count; at += team.team_size()) {
        std::int64_t const next = at + 1 < count ? all_ties[at + 1] : ties;
        numbers[at] += (next < wanted ? next : wanted) - (all_ties[at] < wanted ? all_ties[at] : wanted);
      }
      team.team_barrier();
      std::int64_t const total = exclusive_scan<Warp>(team, numbers, count, scratch);
      if (team.team_rank() == 0) {
        record->kept = total;
      }
    }
  }
};

/// Writes what is kept of each piece to its place. The last team copies the record for the host, and clears it.
template <class Warp, execution_space E, selection_source Source>
struct write_kept_kernel {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;

  candidate_pieces pieces;
  Source from;
  kept_magnitudes<value_type> kept;
  std::int64_t const* numbers;
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
    std::int64_t out = numbers[which];
    std::int64_t ties = numbers[pieces.count + which];
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

/// Warps are dealt to pieces one each.
template <class Warp>
std::int64_t teams_for_pieces(std::int64_t pieces) {
  return (pieces + warps_in_team<Warp> - 1) / warps_in_team<Warp>;
}

/// Enqueues the count of what is kept of each piece; the workspace must have device room for them.
template <class Warp, execution_space E, gradient_index Index, gradient_value Value>
void count_kept(E const& exec, candidate_pieces const& pieces, Value const* values, kept_magnitudes<Value> const& kept,
                selection_workspace<Index, Value, E> const& workspace) {
  auto const& device = workspace.on_device;
  for_teams<Warp>("oktopk::select::count_kept", exec, teams_for_pieces<Warp>(pieces.count),
                  numbers_to_scan<Warp> * std::int64_t(sizeof(std::int64_t)) + 64,
                  count_kept_kernel<Warp, E, Value>{pieces, values, kept, device.numbers.data(), device.record.data()});
}

/// Writes what is kept, in order, no more than `capacity` entries; waits for `exec` and gives the record.
template <class Warp, execution_space E, selection_source Source>
selection_record const& write_kept(char const* label, E const& exec, candidate_pieces const& pieces, Source const& from,
                                   kept_magnitudes<value_of<Source>> const& kept, std::int64_t capacity,
                                   workspace_for<Source, E> const& workspace) {
  auto const& device = workspace.on_device;
  for_teams<Warp>("oktopk::select::write_kept", exec, teams_for_pieces<Warp>(pieces.count), 0,
                  write_kept_kernel<Warp, E, Source>{pieces, from, kept, device.numbers.data(),
                                                     workspace.indices.data(), workspace.values.data(), capacity,
                                                     device.record.data(), device.host_copy.device().data()});
  device.host_copy.to_host(exec, 1, label);
  return *device.host_copy.host();
}

// The one pass over a source on a device. Each team loads a tile, row after row of its warps' lanes, and keeps it in
// registers until it knows how many candidates pass; then it takes room for them and writes them side by side.

/// Rows of a warp: loads that a lane has under way at a time, 128 bytes of them.
template <gradient_value Value>
inline constexpr int gathered_rows = 128 / sizeof(Value);

template <class Warp, gradient_value Value>
inline constexpr std::int64_t tile_width = std::int64_t(warps_in_team<Warp>) * gathered_rows<Value> * Warp::lanes;

template <class Warp, gradient_value Value>
std::int64_t tiles_of(std::int64_t size) {
  return (size + tile_width<Warp, Value> - 1) / tile_width<Warp, Value>;
}

/// The kernel. `Then` sees each candidate that fits (`see(bits)`); by the last team it ends (`finish(team, record)`).
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
  static constexpr int staged = 1024; ///< candidates written at a time

  struct staged_candidate {
    value_type value;
    std::int32_t place; ///< in the tile
  };

  /// The shared memory of a team.
  struct shared_scratch {
    std::int64_t target;                                        ///< where the tile is written
    std::int32_t found[std::size_t(warps)];                     ///< candidates of each warp
    std::int32_t before[std::size_t(warps)][std::size_t(rows)]; ///< of a warp's, those before each row
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
    std::int64_t const tile = static_cast<std::int64_t>(team.league_rank()) * width;
    if (tile + width <= size) {
      gather<true>(team, tile);
    } else {
      gather<false>(team, tile);
    }
    if (is_last_team(team, &record->arrived)) {
      then.template finish<Warp>(team, *record);
    }
  }

private:
  template <bool Whole>
  KOKKOS_INLINE_FUNCTION void gather(team_of<E> const& team, std::int64_t tile) const {
    Warp const warp = warp_in<Warp>(team);
    int const number = warp_number<Warp>(team);
    shared_scratch& shared = *shared_in<shared_scratch>(team, 1);
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
    mask_type masks[std::size_t(rows)];
    typename Warp::template per_lane<bits> largest; // most lanes have nothing to write
    warp.each([&](int lane) { largest[lane] = 0; });
    for (int row = 0; row < rows; ++row) {
      masks[row] = warp.ballot([&](int lane) {
        std::int64_t const i = begin + row * Warp::lanes + lane;
        bits const magnitude = magnitude_bits(x[row][lane]);
        largest[lane] = magnitude > largest[lane] ? magnitude : largest[lane];
        return (Whole || i < size) && magnitude >= least;
      });
    }
    // Each lane counts one row.
    warp.once([&] {
      for (int row = 0; row < rows; ++row) {
        shared.masks[number][row] = masks[row];
      }
    });
    warp.sync();
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
      tiles[team.league_rank()] = {shared.target, total};
    }
    team.team_barrier();
    std::int64_t const target = shared.target;
    if (target + total > capacity) {
      return; // the same in the whole team
    }
    for (int first = 0; first < total; first += staged) {
      warp.each([&](int lane) {
        if (largest[lane] >= least) {
          mask_type const own = mask_type(1) << lane;
          for (int row = 0; row < rows; ++row) {
            if ((masks[row] & own) != 0) {
              int const at = before + shared.before[number][row] + rank_in<Warp::lanes>(masks[row], lane) - first;
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
  for_teams<Warp>("oktopk::select::gather", exec, tiles_of<Warp, value_type>(from.size()), kernel.shared_bytes(),
                  kernel);
  using entries = sparse_ref<index_type, value_type, typename E::memory_space>;
  return candidates<index_type, value_type, typename E::memory_space>(entries(kernel.indices, kernel.values, most));
}

} // namespace oktopk::detail
