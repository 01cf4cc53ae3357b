// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/concepts.hpp>

#include <cstdint>
#include <type_traits>

namespace oktopk::detail {

/// Whether kernels of `E` never run in two threads at once.
template <execution_space E>
inline constexpr bool is_one_thread =
#ifdef KOKKOS_ENABLE_SERIAL
    std::is_same_v<E, Kokkos::Serial>;
#else
    false;
#endif

/// Sets bits that other threads may set beside; plainly where there are none, for a locked instruction costs tenfold.
template <execution_space E>
KOKKOS_INLINE_FUNCTION void set_bits(std::uint64_t* word, std::uint64_t bits) {
  if constexpr (is_one_thread<E>) {
    *word |= bits;
  } else {
    Kokkos::atomic_fetch_or(word, bits);
  }
}

} // namespace oktopk::detail
