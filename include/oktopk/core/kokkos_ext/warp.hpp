// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <cstddef>
#include <cstdint>
#include <type_traits>

// Warps: lanes that run in step and see each other's values without memory. A kernel is written once, for a warp. If
// the hardware has warps, it runs with threads as lanes. If not, one thread plays all lanes; a host tests warps of 32
// and of 64 lanes in this way, too.
//
// A value that differs from lane to lane is a `per_lane<T>`; `[lane]` is the value of one lane. All other values are
// the same in the whole warp. All lanes call every function of a warp.
namespace oktopk::detail {

/// Bits for the lanes of a warp.
template <int Lanes>
using lane_mask = std::conditional_t<(Lanes > 32), std::uint64_t, std::uint32_t>;

/// The number of lanes of a mask that come before a lane.
template <int Lanes>
KOKKOS_INLINE_FUNCTION int rank_in(lane_mask<Lanes> mask, int lane) {
  return popcount(static_cast<lane_mask<Lanes>>(mask & ((lane_mask<Lanes>(1) << lane) - 1)));
}

/// A warp with one thread for each lane, all of which must run; or with one thread that plays all lanes, one after the
/// other: the portable form.
template <int Lanes, int Threads>
class basic_warp {
  static constexpr bool is_played = Threads == 1;

public:
  static constexpr int lanes = Lanes;
  static constexpr int threads = Threads;

  template <class T>
  struct per_lane {
    T values[std::size_t(Lanes / Threads)];
    KOKKOS_INLINE_FUNCTION T& operator[](int lane) { return values[is_played ? lane : 0]; }
    KOKKOS_INLINE_FUNCTION T const& operator[](int lane) const { return values[is_played ? lane : 0]; }
  };

  KOKKOS_INLINE_FUNCTION explicit basic_warp(int thread) : lane_(is_played ? 0 : thread % Lanes) {}

  /// Calls `act(lane)` for every lane.
  template <class Act>
  KOKKOS_INLINE_FUNCTION void each(Act const& act) const {
    if constexpr (is_played) {
      for (int lane = 0; lane < Lanes; ++lane) {
        act(lane);
      }
    } else {
      act(lane_);
    }
  }

  /// Calls `act()` once.
  template <class Act>
  KOKKOS_INLINE_FUNCTION void once(Act const& act) const {
    if (is_played || lane_ == 0) {
      act();
    }
  }

  /// After it every lane sees the values that the others wrote to memory before it.
  KOKKOS_INLINE_FUNCTION void sync() const {
    if constexpr (!is_played) {
#if defined(__CUDA_ARCH__)
      __syncwarp();
#elif defined(__HIP_DEVICE_COMPILE__)
      __threadfence_block(); // the lanes run in step
#endif
    }
  }

  /// The mask of the lanes for which `holds(lane)` is true.
  template <class Holds>
  KOKKOS_INLINE_FUNCTION lane_mask<Lanes> ballot(Holds const& holds) const {
    lane_mask<Lanes> mask = 0;
    if constexpr (is_played) {
      for (int lane = 0; lane < Lanes; ++lane) {
        mask |= holds(lane) ? lane_mask<Lanes>(1) << lane : 0;
      }
    } else {
      [[maybe_unused]] bool const mine = holds(lane_);
#if defined(__CUDA_ARCH__)
      mask = __ballot_sync(0xffffffffU, mine);
#elif defined(__HIP_DEVICE_COMPILE__)
      mask = static_cast<lane_mask<Lanes>>(__ballot(mine));
#endif
    }
    return mask;
  }

  /// The result of `make()`, which is called once.
  template <class Make>
  KOKKOS_INLINE_FUNCTION auto broadcast(Make const& make) const {
    if constexpr (is_played) {
      return make();
    } else {
      decltype(make()) made{};
      if (lane_ == 0) {
        made = make();
      }
      return from_lane(made, 0);
    }
  }

  /// Replaces the number of each lane by the sum of those before it, and returns the sum of all.
  template <class Number>
  KOKKOS_INLINE_FUNCTION Number exclusive_scan(per_lane<Number>& numbers) const {
    if constexpr (is_played) {
      Number sum = 0;
      for (Number& each : numbers.values) {
        Number const own = each;
        each = sum;
        sum += own;
      }
      return sum;
    } else {
      Number const own = numbers[lane_];
      Number sum = own;
      for (int reach = 1; reach < Lanes; reach *= 2) {
        Number const before = from_lane_before(sum, reach);
        sum += lane_ >= reach ? before : 0;
      }
      numbers[lane_] = sum - own;
      return from_lane(sum, Lanes - 1);
    }
  }

private:
  // These two are called on a device alone.
  template <class T>
  KOKKOS_INLINE_FUNCTION static T from_lane(T value, [[maybe_unused]] int lane) {
#if defined(__CUDA_ARCH__)
    return __shfl_sync(0xffffffffU, value, lane);
#elif defined(__HIP_DEVICE_COMPILE__)
    return __shfl(value, lane);
#else
    return value;
#endif
  }

  template <class T>
  KOKKOS_INLINE_FUNCTION static T from_lane_before(T value, [[maybe_unused]] int distance) {
#if defined(__CUDA_ARCH__)
    return __shfl_up_sync(0xffffffffU, value, static_cast<unsigned>(distance));
#elif defined(__HIP_DEVICE_COMPILE__)
    return __shfl_up(value, static_cast<unsigned>(distance));
#else
    return value;
#endif
  }

  int lane_;
};

template <int Lanes>
using scalar_warp = basic_warp<Lanes, 1>;

/// Lanes of the warps that the hardware of `E` has; 0 if it has none.
template <execution_space E>
inline constexpr int hardware_lanes = 0;
#ifdef KOKKOS_ENABLE_CUDA
template <>
inline constexpr int hardware_lanes<Kokkos::Cuda> = 32;
#endif
#ifdef KOKKOS_ENABLE_HIP
template <>
inline constexpr int hardware_lanes<kokkos_hip::HIP> = kokkos_hip::Impl::HIPTraits::WarpSize;
#endif

/// The warp type of kernels of `E`.
template <execution_space E>
using warp_of =
    std::conditional_t<hardware_lanes<E> == 0, scalar_warp<32>, basic_warp<hardware_lanes<E>, hardware_lanes<E>>>;

// Kernels whose teams are whole warps, and functions for work that the last team does for all.

/// The number of warps in a team, which has 256 threads; 1 if one thread plays the warp.
template <class Warp>
inline constexpr int warps_in_team = Warp::threads == 1 ? 1 : 256 / Warp::lanes;

/// The number of teams for so many warps.
template <class Warp>
std::int64_t teams_of_warps(std::int64_t warps) {
  return (warps + warps_in_team<Warp> - 1) / warps_in_team<Warp>;
}

template <execution_space E>
using team_of = typename Kokkos::TeamPolicy<E>::member_type;

/// The warp that the calling thread belongs to.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION Warp warp_in(Team const& team) {
  return Warp(team.team_rank());
}

/// The number of that warp in the team.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION int warp_number(Team const& team) {
  return team.team_rank() / Warp::threads;
}

/// The number of a warp among those of all teams.
template <class Warp, class Team>
KOKKOS_INLINE_FUNCTION std::int64_t warp_number_in_league(Team const& team) {
  return static_cast<std::int64_t>(team.league_rank()) * warps_in_team<Warp> + warp_number<Warp>(team);
}

/// True if `Kokkos::PerTeam` takes bytes as a size_t, as newer ones than Kokkos 3 do: between braces an unsigned number
/// becomes no int.
template <class Unsigned>
concept counts_bytes_of_teams = requires(Unsigned bytes) { Kokkos::PerTeam({bytes}); };
using team_bytes = std::conditional_t<counts_bytes_of_teams<unsigned>, std::size_t, int>;

/// Launches `teams` teams, each with `shared_bytes` of shared memory. Does nothing for 0 teams. With `AtATime` so many
/// run on a multiprocessor at a time, if their registers allow it, which the compiler sees to.
template <class Warp, int AtATime = 0, execution_space E, class Kernel>
void for_teams(char const* label, E const& exec, std::int64_t teams, std::int64_t shared_bytes, Kernel const& kernel) {
  constexpr int threads = warps_in_team<Warp> * Warp::threads;
  using bounds = Kokkos::LaunchBounds<static_cast<unsigned>(threads), static_cast<unsigned>(AtATime)>;
  using policy_type =
      std::conditional_t<AtATime == 0 || threads == 1, Kokkos::TeamPolicy<E>, Kokkos::TeamPolicy<E, bounds>>;
  if (teams > 0) {
    auto policy = policy_type(exec, static_cast<int>(teams), threads);
    policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<team_bytes>(shared_bytes)));
    Kokkos::parallel_for(label, policy, kernel);
  }
}

/// The shared memory of a team: `count` objects of type `T`, aligned to 8 bytes.
template <class T, class Team>
KOKKOS_INLINE_FUNCTION T* shared_in(Team const& team, std::int64_t count) {
  return static_cast<T*>(team.team_shmem().get_shmem_aligned(static_cast<std::size_t>(count) * sizeof(T), 8));
}

/// True for the last team of the league that calls this. It then sees all that the others wrote before their calls.
///
/// Called by all threads of all teams. `arrived` is zero before the kernel, and after it again. No team waits for
/// another one, so the teams need not run at the same time.
template <class Team>
KOKKOS_INLINE_FUNCTION bool is_last_team(Team const& team, std::int64_t* arrived) {
  // Each thread fences: on some GPUs the barrier of a team does not make its stores visible to other teams.
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

/// The sum of the first `count` numbers, by one thread.
template <class Number>
KOKKOS_INLINE_FUNCTION Number sum_of(Number const* numbers, int count) {
  Number sum = 0;
  for (int at = 0; at < count; ++at) {
    sum += numbers[at];
  }
  return sum;
}

/// The number of values that a team shares in a scan: the size of `shared` in `sum_before`.
template <class Warp>
inline constexpr int numbers_to_scan = warps_in_team<Warp>;

/// Shared memory for them and a little more.
template <class Warp>
inline constexpr std::int64_t bytes_to_scan = numbers_to_scan<Warp> * std::int64_t(sizeof(std::int64_t)) + 64;

/// Returns the sum of the values of the threads before this one, and sets `total` to the sum of all. Called by all
/// threads of a team.
template <class Warp, class Team, class Number>
KOKKOS_INLINE_FUNCTION Number sum_before(Team const& team, Number value, Number* shared, Number& total) {
  if constexpr (Warp::threads == 1) { // the team is one thread
    total = value;
    return 0;
  } else {
    Warp const warp = warp_in<Warp>(team);
    int const mine = warp_number<Warp>(team);
    typename Warp::template per_lane<Number> before{value};
    Number const all = warp.exclusive_scan(before);
    warp.once([&] { shared[mine] = all; });
    team.team_barrier();
    Number const others = warp.broadcast([&] { return sum_of(shared, mine); });
    total = warp.broadcast([&] { return sum_of(shared, warps_in_team<Warp>); });
    team.team_barrier(); // the room may be used again
    return others + before[team.team_rank() % Warp::lanes];
  }
}

/// The part of `count` numbers that the calling thread takes: neighbours, so that it needs only one sum of the others.
template <class Team>
struct thread_share {
  std::int64_t begin;
  std::int64_t end;

  KOKKOS_INLINE_FUNCTION thread_share(Team const& team, std::int64_t count) {
    std::int64_t const each = (count + team.team_size() - 1) / team.team_size();
    begin = team.team_rank() * each < count ? team.team_rank() * each : count;
    end = begin + each < count ? begin + each : count;
  }
};

/// Replaces the numbers by the sums of those before them, and returns the sum of all. Called by all threads of one
/// team, which must see the numbers, and sees the results after a barrier.
template <class Warp, class Team, class Number>
KOKKOS_INLINE_FUNCTION Number exclusive_scan(Team const& team, Number* numbers, std::int64_t count, Number* shared) {
  thread_share<Team> const mine(team, count);
  Number own = 0;
  for (std::int64_t at = mine.begin; at < mine.end; ++at) {
    own += numbers[at];
  }
  Number total = 0;
  Number before = sum_before<Warp, Team, Number>(team, own, shared, total);
  for (std::int64_t at = mine.begin; at < mine.end; ++at) {
    Number const each = numbers[at];
    numbers[at] = before;
    before += each;
  }
  return total;
}

} // namespace oktopk::detail
