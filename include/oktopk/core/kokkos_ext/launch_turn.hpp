// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <concepts>
#include <mutex>

namespace oktopk {

namespace detail {

inline thread_local bool has_launch_turn = false; ///< this thread holds `launch_mutex`
inline std::mutex launch_mutex;                   ///< held by the thread that may launch kernels and wait for them

inline void take_launch_turn() {
  launch_mutex.lock();
  has_launch_turn = true;
}

inline void leave_launch_turn() {
  has_launch_turn = false;
  launch_mutex.unlock();
}

/// True for a Kokkos that two threads must not use at once: before 4.4 kernels of two share scratch memory.
inline constexpr bool launches_need_turns = KOKKOS_VERSION < 40400;

/// True where kernels of `E` may be launched by another thread than the one that has initialised Kokkos. Before 4.4,
/// OpenMP knows its threads by that thread alone, and a new thread is on no chosen device; `Threads` never takes
/// another one.
template <execution_space E>
constexpr bool launches_from_any_thread() {
#ifdef KOKKOS_ENABLE_SERIAL
  if (std::same_as<E, Kokkos::Serial>) {
    return true;
  }
#endif
#ifdef KOKKOS_ENABLE_THREADS
  if (std::same_as<E, Kokkos::Threads>) {
    return false;
  }
#endif
  return !launches_need_turns;
}

} // namespace detail

/// The turn of this thread to use Kokkos: for a program that launches kernels or copies views of its own while buckets
/// are under way (`bucketed`). Kokkos before 4.4 must not be used by two threads at once; with later ones turns are not
/// needed, and cost two operations on a mutex.
///
/// Waits until no other thread has the turn, and gives it back when it goes out of scope. A turn within a turn of the
/// same thread is the same one. The kernels of a turn must have ended with it: fence their instance. The communicators
/// of the library lend the turn to others while they wait for messages (`launch_pause`).
class launch_turn {
public:
  launch_turn() : is_first_(!detail::has_launch_turn) {
    if (is_first_) {
      detail::take_launch_turn();
    }
  }

  ~launch_turn() {
    if (is_first_) {
      detail::leave_launch_turn();
    }
  }

  launch_turn(launch_turn const&) = delete;
  launch_turn& operator=(launch_turn const&) = delete;

private:
  bool is_first_;
};

/// Lends the turn of this thread, if it has it, to others until the end of the scope: for waits that launch nothing.
class launch_pause {
public:
  launch_pause() : had_turn_(detail::has_launch_turn) {
    if (had_turn_) {
      detail::leave_launch_turn();
    }
  }

  ~launch_pause() {
    if (had_turn_) {
      detail::take_launch_turn();
    }
  }

  launch_pause(launch_pause const&) = delete;
  launch_pause& operator=(launch_pause const&) = delete;

private:
  bool had_turn_;
};

} // namespace oktopk
