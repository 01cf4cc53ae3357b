// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/warp.hpp>
#include <oktopk/select/kernel/count_digit.hpp>
#include <oktopk/select/kernel/device/pieces.hpp>

#include <algorithm>
#include <cstdint>

// Histograms of a digit on a device: of each team in its shared memory, then of all. The last team reads the sums, and
// leaves them zero for the next time.
namespace oktopk::detail {

/// The widest digit: its histogram fits into the memory that a team shares.
inline constexpr int widest_shared_digit = 12;

/// Adds those of a team's candidates that count to `sums`. `load(i)` gives a candidate's magnitude pattern; those at
/// positions from `size` on are none. The last bin of a range has most of them: its lanes are counted together.
template <class Warp, gradient_value Value, class Count, class Team, class Load>
KOKKOS_INLINE_FUNCTION void count_by_team(Team const& team, digit<Value> which, std::int64_t size, Load const& load,
                                          Count* sums) {
  Warp const warp = warp_in<Warp>(team);
  std::int64_t const bins = std::int64_t(1) << which.width;
  auto* const own = shared_in<std::uint32_t>(team, bins);
  for (std::int64_t bin = team.team_rank(); bin < bins; bin += team.team_size()) {
    own[bin] = 0;
  }
  team.team_barrier();
  std::int64_t const stride = static_cast<std::int64_t>(team.league_size()) * warps_in_team<Warp> * Warp::lanes;
  for (std::int64_t first = warp_number_in_league<Warp>(team) * Warp::lanes; first < size; first += stride) {
    typename Warp::template per_lane<std::int64_t> bin;
    warp.each([&](int lane) { bin[lane] = first + lane < size ? which.bin(load(first + lane)) : -1; });
    auto const last = warp.ballot([&](int lane) { return bin[lane] == bins - 1; });
    warp.once([&] {
      if (last != 0) {
        Kokkos::atomic_fetch_add(&own[bins - 1], static_cast<std::uint32_t>(popcount(last)));
      }
    });
    warp.each([&](int lane) {
      if (bin[lane] >= 0 && bin[lane] < bins - 1) {
        Kokkos::atomic_fetch_add(&own[bin[lane]], std::uint32_t(1));
      }
    });
  }
  team.team_barrier();
  for (std::int64_t bin = team.team_rank(); bin < bins; bin += team.team_size()) {
    if (own[bin] != 0) {
      Kokkos::atomic_fetch_add(&sums[bin], static_cast<Count>(own[bin]));
    }
  }
}

/// Of the bins from the top, finds the one in which the `wanted`-th candidate is, notes it in the record, and clears
/// the bins. By all threads of one team. Where there are fewer candidates nothing is noted: somebody else finds that
/// out.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION void find_bin(Team const& team, std::uint32_t* sums, int width, selection_record& record) {
  auto* const room = shared_in<std::int64_t>(team, numbers_to_add_up<Warp>);
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
      sum_before<Warp, Team, std::int64_t>(team, own, room, total); // all have read the record after it
  if (above < wanted && wanted <= above + own) {
    std::int64_t at = first;
    for (; above + sums[bins - 1 - at] < wanted; ++at) {
      above += sums[bins - 1 - at];
    }
    std::int64_t const bin = bins - 1 - at;
    record.wanted = wanted - above;
    record.inside = sums[bin];
    record.prefix = (record.prefix << width) | bin;
    record.below_last |= bin != bins - 1 ? 1 : 0;
  }
  for (std::int64_t at = first; at < end; ++at) {
    sums[bins - 1 - at] = 0;
  }
}

/// Bytes that a team shares to count a digit of so many bits, and to find the bin.
template <class Warp>
std::int64_t shared_bytes_of_digit(int width) {
  return (std::int64_t(1) << width) * std::int64_t(sizeof(std::uint32_t)) +
         numbers_to_add_up<Warp> * std::int64_t(sizeof(std::int64_t)) + 64;
}

/// Counts a digit that the host knows, and writes its histogram for the host to read.
template <class Warp, execution_space E, gradient_value Value>
struct digit_kernel {
  using team_type = team_of<E>;

  array_ref<Value const, typename E::memory_space> values;
  digit<Value> which;
  std::int64_t* sums;
  std::int64_t* arrived;
  std::int64_t* out;

  KOKKOS_INLINE_FUNCTION void operator()(team_type const& team) const {
    auto const size = static_cast<std::int64_t>(values.extent(0));
    Value const* const from = values.data();
    count_by_team<Warp>(
        team, which, size, [from](std::int64_t i) { return magnitude_bits(from[i]); }, sums);
    if (is_last_team(team, arrived)) {
      for (std::int64_t bin = team.team_rank(); bin < std::int64_t(1) << which.width; bin += team.team_size()) {
        out[bin] = sums[bin];
        sums[bin] = 0;
      }
    }
  }
};

/// Teams that count so many candidates: each makes a histogram worth its while, unless there are few.
inline std::int64_t counting_teams(std::int64_t candidates, int digit_bits) {
  std::int64_t const each = std::max<std::int64_t>(4096, std::int64_t(2) << digit_bits);
  return std::clamp<std::int64_t>(candidates / each, 1, 256);
}

template <class Warp, execution_space E, gradient_value Value>
void count_digit_by_teams(E const& exec, array_ref<Value const, typename E::memory_space> values, digit<Value> which,
                          std::int64_t* sums, std::int64_t* arrived, std::int64_t* out) {
  for_teams<Warp>(
      "oktopk::select::count_digit", exec, counting_teams(static_cast<std::int64_t>(values.extent(0)), which.width),
      shared_bytes_of_digit<Warp>(which.width), digit_kernel<Warp, E, Value>{values, which, sums, arrived, out});
}

/// What the gathering pass does beside: the histogram of the range's first digit, and of all candidates together the
/// bin of the `wanted`-th.
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

/// Counts a later digit, of candidates that were gathered: which ones count, the record tells.
template <class Warp, execution_space E, gradient_value Value>
struct next_digit_kernel {
  using team_type = team_of<E>;

  Value const* values;
  std::int64_t room;
  digit<Value> which; ///< without its prefix
  std::uint32_t* sums;
  selection_record* record;

  KOKKOS_INLINE_FUNCTION void operator()(team_type const& team) const {
    digit<Value> known = which;
    known.prefix = static_cast<bits_of<Value>>(record->prefix);
    std::int64_t const count = record->count <= room ? record->count : 0;
    Value const* const from = values;
    count_by_team<Warp>(
        team, known, count, [from](std::int64_t i) { return magnitude_bits(from[i]); }, sums);
    if (is_last_team(team, &record->arrived)) {
      find_bin<Warp>(team, sums, known.width, *record);
    }
  }
};

} // namespace oktopk::detail
