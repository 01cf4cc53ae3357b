// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/warp.hpp>
#include <oktopk/select/kernel/source.hpp>
#include <oktopk/select/kernel/workspace.hpp>

#include <cstdint>

// The one pass over a source on a device. Each team loads a tile, row after row of its warps' lanes, and keeps it in
// registers until it knows how many candidates pass; then it takes room for them and writes them side by side.
namespace oktopk::detail {

/// Where a pass writes its candidates: those of a tile follow each other, tiles lie in any order.
template <gradient_index Index, gradient_value Value>
struct gathered_candidates {
  Index* indices = nullptr;
  Value* values = nullptr;
  std::int64_t room = 0; ///< what does not fit is only counted
  candidate_run* tiles = nullptr;
  selection_record* record = nullptr;
};

/// Rows of a warp: loads that a lane has under way at a time, 128 bytes of them.
template <gradient_value Value>
inline constexpr int gathered_rows = 128 / sizeof(Value);

template <class Warp, gradient_value Value>
inline constexpr std::int64_t tile_width = std::int64_t(warps_in_team<Warp>) * gathered_rows<Value> * Warp::lanes;

template <class Warp, gradient_value Value>
std::int64_t tiles_of(std::int64_t size) {
  return (size + tile_width<Warp, Value> - 1) / tile_width<Warp, Value>;
}

/// The kernel. `Then` says what is done with each candidate that fits (`see(bits)`), and by the last team with all of
/// them (`finish(team, record)`).
template <class Warp, execution_space E, selection_source Source, class Then>
struct gather_kernel {
  using index_type = typename Source::index_type;
  using value_type = typename Source::value_type;
  using bits = bits_of<value_type>;
  using team_type = team_of<E>;
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
  struct shared_room {
    std::int64_t target;                                        ///< where the tile is written
    std::int32_t found[std::size_t(warps)];                     ///< candidates of each warp
    std::int32_t before[std::size_t(warps)][std::size_t(rows)]; ///< of a warp's, those before each row
    mask_type masks[std::size_t(warps)][std::size_t(rows)];
    staged_candidate stage[std::size_t(staged)];
  };

  Source from;
  std::int64_t size; ///< of the source
  bits threshold;    ///< the pattern that candidates reach
  gathered_candidates<index_type, value_type> to;
  Then then;

  static std::int64_t shared_bytes() { return std::int64_t(sizeof(shared_room)) + 256; } // `then` needs a little

  KOKKOS_INLINE_FUNCTION void operator()(team_type const& team) const {
    std::int64_t const tile = static_cast<std::int64_t>(team.league_rank()) * width;
    if (tile + width <= size) {
      gather<true>(team, tile);
    } else {
      gather<false>(team, tile);
    }
    if (is_last_team(team, &to.record->arrived)) {
      then.template finish<Warp>(team, *to.record);
    }
  }

private:
  template <bool Whole>
  KOKKOS_INLINE_FUNCTION void gather(team_type const& team, std::int64_t tile) const {
    Warp const warp = warp_in<Warp>(team);
    int const number = warp_number<Warp>(team);
    shared_room& shared = *shared_in<shared_room>(team, 1);
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
    warp.meet();
    typename Warp::template per_lane<std::int32_t> counts;
    warp.each([&](int lane) { counts[lane] = lane < rows ? popcount(shared.masks[number][lane]) : 0; });
    std::int32_t const mine = warp.add_up(counts);
    warp.each([&](int lane) {
      if (lane < rows) {
        shared.before[number][lane] = counts[lane];
      }
    });
    warp.once([&] { shared.found[number] = mine; });
    team.team_barrier();
    int const before = warp.from_one([&] { return sum_of(shared.found, number); });
    int const total = warp.from_one([&] { return sum_of(shared.found, warps); });
    if (team.team_rank() == 0) {
      shared.target = Kokkos::atomic_fetch_add(&to.record->count, static_cast<std::int64_t>(total));
      to.tiles[team.league_rank()] = {shared.target, total};
    }
    team.team_barrier();
    std::int64_t const target = shared.target;
    if (target + total > to.room) {
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

  KOKKOS_INLINE_FUNCTION void write(team_type const& team, staged_candidate const* stage, int count, std::int64_t tile,
                                    std::int64_t target) const {
    for (int at = team.team_rank(); at < count; at += team.team_size()) {
      staged_candidate const each = stage[at];
      to.values[target + at] = each.value;
      to.indices[target + at] = from.index(tile + each.place);
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
  gathered_candidates<index_type, value_type> const to{workspace.chunk_indices.data(), workspace.chunk_values.data(),
                                                       most, workspace.on_device.pieces.data(),
                                                       workspace.on_device.record.data()};
  gather_kernel<Warp, E, Source, Then> const kernel{from, from.size(), threshold, to, then};
  for_teams<Warp>("oktopk::select::gather", exec, tiles_of<Warp, value_type>(from.size()), kernel.shared_bytes(),
                  kernel);
  using entries = sparse_ref<index_type, value_type, typename E::memory_space>;
  return candidates<index_type, value_type, typename E::memory_space>(entries(to.indices, to.values, most));
}

} // namespace oktopk::detail
