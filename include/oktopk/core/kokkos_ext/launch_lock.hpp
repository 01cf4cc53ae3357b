// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <mutex>

namespace oktopk {

namespace detail {

inline thread_local bool has_launch_lock = false; ///< this thread holds `launch_mutex`
inline std::mutex launch_mutex;                   ///< held by the thread that may launch kernels and wait for them

/// Gives the lock to this thread, or takes it away, until the end of the scope; nothing where that is so already.
template <bool Holds>
class launch_lock_scope {
public:
  launch_lock_scope() : changes_(has_launch_lock != Holds) { change_to(Holds); }
  ~launch_lock_scope() { change_to(!Holds); }
  launch_lock_scope& operator=(launch_lock_scope&&) = delete;

private:
  void change_to(bool holds) const {
    if (changes_ && holds) {
      launch_mutex.lock();
      has_launch_lock = true;
    } else if (changes_) {
      has_launch_lock = false;
      launch_mutex.unlock();
    }
  }

  bool changes_;
};

/// True for a Kokkos that two threads must not use at once: before 4.4 kernels of two share scratch memory.
inline constexpr bool launches_need_lock = KOKKOS_VERSION < 40400;

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
  return !launches_need_lock;
}

} // namespace detail

/// The lock of the right to use Kokkos: for a program that launches kernels or copies views of its own while buckets
/// are under way (`bucketed`). Kokkos before 4.4 must not be used by two threads at once; with later ones locks are not
/// needed, and cost two operations on a mutex.
///
/// Waits until no other thread has the lock, and releases it when it goes out of scope. A lock within a lock of the
/// same thread is the same one. The kernels of a lock must have ended with it: fence their instance. The communicators
/// of the library release the lock while they wait for messages (`launch_unlock`).
class launch_lock : detail::launch_lock_scope<true> {};

/// Releases this thread's lock, if it has it, until the end of the scope: for waits that launch nothing.
class launch_unlock : detail::launch_lock_scope<false> {};

} // namespace oktopk
