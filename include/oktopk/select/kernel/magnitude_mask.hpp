// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

// The one place that knows vector instructions. Compilers for a device get the portable way: for them these are calls
// to functions of the host from functions of both.
#if defined(__CUDACC__) || defined(__HIPCC__)
#elif defined(__AVX512F__)
#define OKTOPK_MASK_AVX512
#include <immintrin.h>
#elif defined(__AVX2__)
#define OKTOPK_MASK_AVX2
#include <immintrin.h>
#elif defined(__SSE2__)
#define OKTOPK_MASK_SSE2
#include <emmintrin.h>
#endif

namespace oktopk::detail {

/// Values that one mask tells of.
inline constexpr int mask_width = 64;

/// Patterns of magnitudes leave the sign bit free, so they compare as signed integers do, the only ones that older
/// vector instructions compare. Not as floating-point numbers: NaN must reach everything, and denormals count.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION std::uint64_t portable_magnitude_mask(Value const* from, bits_of<Value> reach) {
  auto const least = static_cast<signed_bits_of<Value>>(reach);
  std::uint64_t mask = 0;
  for (int eight = 0; eight < mask_width; eight += 8) {
    // A byte each, for compilers vectorise that; the product brings the eight lowest bits together in the highest byte.
    unsigned char flags[8];
    for (int i = 0; i < 8; ++i) {
      flags[i] =
          static_cast<unsigned char>(static_cast<signed_bits_of<Value>>(magnitude_bits(from[eight + i])) >= least);
    }
    std::uint64_t bytes = 0;
    for (int i = 0; i < 8; ++i) {
      bytes |= static_cast<std::uint64_t>(flags[i]) << (8 * i);
    }
    mask |= ((bytes * 0x0102040810204080U) >> 56) << eight;
  }
  return mask;
}

/// Which of 64 values have a magnitude whose pattern is at least `reach`; value i is bit i.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask(Value const* from, bits_of<Value> reach) {
  return portable_magnitude_mask(from, reach);
}

#if defined(OKTOPK_MASK_AVX512)

template <>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask<float>(float const* from, std::uint32_t reach) {
  __m512i const least = _mm512_set1_epi32(static_cast<int>(reach));
  __m512i const magnitude = _mm512_set1_epi32(0x7fffffff);
  std::uint64_t mask = 0;
  for (int part = 0; part < mask_width; part += 16) {
    __m512i const bits = _mm512_and_si512(_mm512_loadu_si512(from + part), magnitude);
    mask |= static_cast<std::uint64_t>(_mm512_cmpge_epi32_mask(bits, least)) << part;
  }
  return mask;
}

template <>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask<double>(double const* from, std::uint64_t reach) {
  __m512i const least = _mm512_set1_epi64(static_cast<long long>(reach));
  __m512i const magnitude = _mm512_set1_epi64(0x7fffffffffffffff);
  std::uint64_t mask = 0;
  for (int part = 0; part < mask_width; part += 8) {
    __m512i const bits = _mm512_and_si512(_mm512_loadu_si512(from + part), magnitude);
    mask |= static_cast<std::uint64_t>(_mm512_cmpge_epi64_mask(bits, least)) << part;
  }
  return mask;
}

#elif defined(OKTOPK_MASK_AVX2)

template <>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask<float>(float const* from, std::uint32_t reach) {
  if (reach == 0) {
    return ~std::uint64_t(0); // nothing is below it to compare with
  }
  __m256i const below = _mm256_set1_epi32(static_cast<int>(reach - 1));
  __m256i const magnitude = _mm256_set1_epi32(0x7fffffff);
  std::uint64_t mask = 0;
  for (int part = 0; part < mask_width; part += 8) {
    __m256i const bits = _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from + part)), magnitude);
    auto const flags =
        static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, below))));
    mask |= static_cast<std::uint64_t>(flags) << part;
  }
  return mask;
}

template <>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask<double>(double const* from, std::uint64_t reach) {
  if (reach == 0) {
    return ~std::uint64_t(0);
  }
  __m256i const below = _mm256_set1_epi64x(static_cast<long long>(reach - 1));
  __m256i const magnitude = _mm256_set1_epi64x(0x7fffffffffffffff);
  std::uint64_t mask = 0;
  for (int part = 0; part < mask_width; part += 4) {
    __m256i const bits = _mm256_and_si256(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(from + part)), magnitude);
    auto const flags =
        static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(bits, below))));
    mask |= static_cast<std::uint64_t>(flags) << part;
  }
  return mask;
}

#elif defined(OKTOPK_MASK_SSE2)

template <>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask<float>(float const* from, std::uint32_t reach) {
  if (reach == 0) {
    return ~std::uint64_t(0); // nothing is below it to compare with
  }
  __m128i const below = _mm_set1_epi32(static_cast<int>(reach - 1));
  __m128i const magnitude = _mm_set1_epi32(0x7fffffff);
  std::uint64_t mask = 0;
  for (int part = 0; part < mask_width; part += 16) {
    __m128i over[4];
    for (std::ptrdiff_t i = 0; i < 4; ++i) {
      auto const* const four = reinterpret_cast<__m128i const*>(from + part + 4 * i);
      over[i] = _mm_cmpgt_epi32(_mm_and_si128(_mm_loadu_si128(four), magnitude), below);
    }
    __m128i const bytes = _mm_packs_epi16(_mm_packs_epi32(over[0], over[1]), _mm_packs_epi32(over[2], over[3]));
    mask |= static_cast<std::uint64_t>(static_cast<std::uint32_t>(_mm_movemask_epi8(bytes))) << part;
  }
  return mask;
}

#endif

/// The instructions that make the masks of floats.
inline char const* magnitude_mask_name() {
#if defined(OKTOPK_MASK_AVX512)
  return "AVX-512";
#elif defined(OKTOPK_MASK_AVX2)
  return "AVX2";
#elif defined(OKTOPK_MASK_SSE2)
  return "SSE2";
#else
  return "portable code";
#endif
}

} // namespace oktopk::detail
