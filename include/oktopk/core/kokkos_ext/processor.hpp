// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>
#include <oktopk/core/kokkos_ext/memory.hpp>

namespace oktopk::detail {

// Code that is compiled a second time, for processors with AVX2 and what came with it. A function with the attribute
// `OKTOPK_FOR_AVX2` calls the common code, which is always inlined, and may be called where `processor_has_avx2()`. The
// processor is asked when the program runs: translation units with different -m flags have the same definitions.
// Fused multiply-adds are not among the instructions, so the results have the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define OKTOPK_FOR_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]
inline bool processor_has_avx2() {
  static bool const has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  return has;
}
#else
#define OKTOPK_FOR_AVX2 KOKKOS_INLINE_FUNCTION
inline bool processor_has_avx2() {
  return false;
}
#endif

/// Asks a CPU for memory that is to be written soon; for kernels. Nothing on a device, whose threads hide each other's
/// waiting. The address need not be valid.
template <execution_space E>
KOKKOS_INLINE_FUNCTION void prefetch_for_writing([[maybe_unused]] void const* address) {
  if constexpr (!is_device<E>) {
    __builtin_prefetch(address, 1);
  }
}

/// True where kernels of `E` never run in two threads at once.
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
