// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/warp.hpp>

#include <cstdint>

// Kernels of teams that are whole warps, and what the last of their teams does for all.
namespace oktopk::detail {

/// Warps in a team, of 256 threads together; one where one thread plays it.
template <class Warp>
inline constexpr int warps_in_team = Warp::threads == 1 ? 1 : 256 / Warp::lanes;

template <execution_space E>
using team_of = typename Kokkos::TeamPolicy<E>::member_type;

/// The warp that the calling thread belongs to, and its number in the team.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION Warp warp_in(Team const& team) {
  return Warp(team.team_rank());
}

template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION int warp_number(Team const& team) {
  return team.team_rank() / Warp::threads;
}

/// The number of a warp among those of all teams.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION std::int64_t warp_number_in_league(Team const& team) {
  return static_cast<std::int64_t>(team.league_rank()) * warps_in_team<Warp> + warp_number<Warp>(team);
}

/// Launches so many teams, with some bytes of memory that each of them shares. None where there are none.
template <class Warp, execution_space E, class Kernel>
void for_teams(char const* label, E const& exec, std::int64_t teams, std::int64_t shared_bytes, Kernel const& kernel) {
  if (teams > 0) {
    auto policy = Kokkos::TeamPolicy<E>(exec, static_cast<int>(teams),
                                        warps_in_team<Warp> * (Warp::threads == 1 ? 1 : Warp::lanes));
    policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(shared_bytes)));
    Kokkos::parallel_for(label, policy, kernel);
  }
}

/// The shared memory of a team: `bytes` of it, aligned to 8.
template <class T, class Team>
KOKKOS_INLINE_FUNCTION T* shared_in(Team const& team, std::int64_t count) {
  return static_cast<T*>(team.team_shmem().get_shmem_aligned(static_cast<std::size_t>(count) * sizeof(T), 8));
}

/// Whether this team is the last of the league to come here: it then sees all that the others wrote before they did.
///
/// Called by all threads of all teams. `arrived` is zero before the kernel, and after it again. No team waits for
/// another one, so the teams need not run at the same time.
template <class Team>
KOKKOS_INLINE_FUNCTION bool is_last_team(Team const& team, std::int64_t* arrived) {
  // By each thread: not on every GPU does the barrier of a team make its stores known to other teams.
  Kokkos::memory_fence();
  team.team_barrier();
  int last = 0;
  if (team.team_rank() == 0) {
    Kokkos::memory_fence();
    last = Kokkos::atomic_fetch_add(arrived, std::int64_t(1)) + 1 == team.league_size() ? 1 : 0;
    if (last != 0) {
      *arrived = 0;
    }
    Kokkos::memory_fence();
  }
  team.team_broadcast(last, 0);
  return last != 0;
}

/// The sum of the first numbers, by one thread.
template <class Number>
KOKKOS_INLINE_FUNCTION Number sum_of(Number const* numbers, int count) {
  Number sum = 0;
  for (int at = 0; at < count; ++at) {
    sum += numbers[at];
  }
  return sum;
}

/// Numbers that a team needs to add up: what `sum_before` is given room for in shared memory.
template <class Warp>
inline constexpr int numbers_to_add_up = warps_in_team<Warp>;

/// The sum of the values of the threads before this one, and in `total` that of all. By all threads of a team.
template <class Warp, class Team, class Number>
KOKKOS_INLINE_FUNCTION Number sum_before(Team const& team, Number value, Number* room, Number& total) {
  if constexpr (Warp::threads == 1) { // the team is one thread
    total = value;
    return 0;
  } else {
    Warp const warp = warp_in<Warp>(team);
    int const mine = warp_number<Warp>(team);
    typename Warp::template per_lane<Number> before{value};
    Number const all = warp.add_up(before);
    warp.once([&] { room[mine] = all; });
    team.team_barrier();
    Number const others = warp.from_one([&] { return sum_of(room, mine); });
    total = warp.from_one([&] { return sum_of(room, warps_in_team<Warp>); });
    team.team_barrier(); // the room may be used again
    return others + before.value;
  }
}

/// Replaces the numbers by the sums of those before them, and gives the sum of all. By all threads of one team, which
/// sees the numbers, and the results after a barrier.
template <class Warp, class Team, class Number>
KOKKOS_INLINE_FUNCTION Number add_up(Team const& team, Number* numbers, std::int64_t count, Number* room) {
  Number sum = 0;
  for (std::int64_t first = 0; first < count; first += team.team_size()) {
    std::int64_t const at = first + team.team_rank();
    Number total = 0;
    Number const before = sum_before<Warp, Team, Number>(team, at < count ? numbers[at] : Number(0), room, total);
    if (at < count) {
      numbers[at] = sum + before;
    }
    sum += total;
  }
  return sum;
}

} // namespace oktopk::detail
