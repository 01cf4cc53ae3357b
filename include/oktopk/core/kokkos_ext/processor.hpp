// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <Kokkos_Macros.hpp>

// Code that is compiled a second time, for processors with AVX2 and what came with it. A function with the attribute
// `OKTOPK_FOR_AVX2` calls the common code, which is always inlined, and may be called where `processor_has_avx2()`. The
// processor is asked when the program runs: translation units with different -m flags have the same definitions.
// Fused multiply-adds are not among the instructions, so the results have the same bits.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define OKTOPK_FOR_AVX2 [[gnu::target("avx2,bmi,bmi2,lzcnt,popcnt")]]
#else
#define OKTOPK_FOR_AVX2 KOKKOS_INLINE_FUNCTION
#endif

namespace oktopk::detail {

inline bool processor_has_avx2() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
  static bool const has = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("bmi2") != 0;
  return has;
#else
  return false;
#endif
}

} // namespace oktopk::detail
