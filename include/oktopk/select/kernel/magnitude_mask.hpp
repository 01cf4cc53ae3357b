// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <cstddef>
#include <cstdint>

// The one place that knows vector instructions. It asks the processor for them, when the program runs, and not the
// flags of the compiler: translation units with different -m flags have the same definitions and may be linked
// together. Compilers for a device get the portable way: for them these are calls to functions of the host from
// functions of both.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define OKTOPK_MASKS_BY_PROCESSOR
#include <immintrin.h>
#endif

namespace oktopk::detail {

/// Values that one mask tells of.
inline constexpr int mask_width = 64;

/// Sets of instructions that make masks.
enum class mask_instructions { plain, avx2, avx512 };

inline char const* name(mask_instructions which) {
  constexpr char const* names[] = {"plain code", "AVX2", "AVX-512"};
  return names[static_cast<int>(which)];
}

/// Patterns of magnitudes leave the sign bit free, so they compare as signed integers do, the only ones that older
/// vector instructions compare. Not as floating-point numbers: NaN must reach everything, and denormals count.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION std::uint64_t portable_mask(Value const* from, bits_of<Value> reach) {
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

/// Which of 64 values have a magnitude whose pattern is at least `reach`; value i is bit i. With instructions that
/// every processor of its kind has, so that it is part of the loop around it.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask(Value const* from, bits_of<Value> reach) {
  return portable_mask(from, reach);
}

#if defined(OKTOPK_MASKS_BY_PROCESSOR)

// There is no comparison of 64 bits in SSE2.
template <>
inline std::uint64_t magnitude_mask<float>(float const* from, std::uint32_t reach) {
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

/// The masks of `count` blocks of 64 values, one after the other, with the instructions of `magnitude_mask`.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void plain_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
  for (int block = 0; block < count; ++block) {
    masks[block] = magnitude_mask(from + block * mask_width, reach);
  }
}

#if defined(OKTOPK_MASKS_BY_PROCESSOR)

// Each names the instructions that it may use, beside those of the compiler's flags.

[[gnu::target("avx512f")]] inline void avx512_masks(float const* from, int count, std::uint32_t reach,
                                                    std::uint64_t* masks) {
  __m512i const least = _mm512_set1_epi32(static_cast<int>(reach));
  __m512i const magnitude = _mm512_set1_epi32(0x7fffffff);
  for (int block = 0; block < count; ++block, from += mask_width) {
    std::uint64_t mask = 0;
    for (int part = 0; part < mask_width; part += 16) {
      __m512i const bits = _mm512_and_si512(_mm512_loadu_si512(from + part), magnitude);
      mask |= static_cast<std::uint64_t>(_mm512_cmpge_epi32_mask(bits, least)) << part;
    }
    masks[block] = mask;
  }
}

[[gnu::target("avx512f")]] inline void avx512_masks(double const* from, int count, std::uint64_t reach,
                                                    std::uint64_t* masks) {
  __m512i const least = _mm512_set1_epi64(static_cast<long long>(reach));
  __m512i const magnitude = _mm512_set1_epi64(0x7fffffffffffffff);
  for (int block = 0; block < count; ++block, from += mask_width) {
    std::uint64_t mask = 0;
    for (int part = 0; part < mask_width; part += 8) {
      __m512i const bits = _mm512_and_si512(_mm512_loadu_si512(from + part), magnitude);
      mask |= static_cast<std::uint64_t>(_mm512_cmpge_epi64_mask(bits, least)) << part;
    }
    masks[block] = mask;
  }
}

// These compare with what is below the least pattern; where nothing is, all values reach it.

[[gnu::target("avx2")]] inline void avx2_masks(float const* from, int count, std::uint32_t reach,
                                               std::uint64_t* masks) {
  std::uint64_t const all = reach == 0 ? ~std::uint64_t(0) : 0;
  __m256i const below = _mm256_set1_epi32(static_cast<int>(reach - 1));
  __m256i const magnitude = _mm256_set1_epi32(0x7fffffff);
  for (int block = 0; block < count; ++block, from += mask_width) {
    std::uint64_t mask = all;
    for (int part = 0; part < mask_width; part += 8) {
      auto const* const eight = reinterpret_cast<__m256i const*>(from + part);
      __m256i const bits = _mm256_and_si256(_mm256_loadu_si256(eight), magnitude);
      auto const flags =
          static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpgt_epi32(bits, below))));
      mask |= static_cast<std::uint64_t>(flags) << part;
    }
    masks[block] = mask;
  }
}

[[gnu::target("avx2")]] inline void avx2_masks(double const* from, int count, std::uint64_t reach,
                                               std::uint64_t* masks) {
  std::uint64_t const all = reach == 0 ? ~std::uint64_t(0) : 0;
  __m256i const below = _mm256_set1_epi64x(static_cast<long long>(reach - 1));
  __m256i const magnitude = _mm256_set1_epi64x(0x7fffffffffffffff);
  for (int block = 0; block < count; ++block, from += mask_width) {
    std::uint64_t mask = all;
    for (int part = 0; part < mask_width; part += 4) {
      auto const* const four = reinterpret_cast<__m256i const*>(from + part);
      __m256i const bits = _mm256_and_si256(_mm256_loadu_si256(four), magnitude);
      auto const flags =
          static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(bits, below))));
      mask |= static_cast<std::uint64_t>(flags) << part;
    }
    masks[block] = mask;
  }
}

/// Whether this processor, and the system on it, runs these instructions.
inline bool processor_has(mask_instructions which) {
  __builtin_cpu_init();
  switch (which) {
  case mask_instructions::avx512: return __builtin_cpu_supports("avx512f") != 0;
  case mask_instructions::avx2: return __builtin_cpu_supports("avx2") != 0;
  default: return true;
  }
}

/// The masks of `count` blocks of 64 values with the instructions named.
template <gradient_value Value>
using mask_kernel = void (*)(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks);

template <gradient_value Value>
mask_kernel<Value> mask_kernel_with(mask_instructions which) {
  switch (which) {
  case mask_instructions::avx512: return avx512_masks;
  case mask_instructions::avx2: return avx2_masks;
  default: return plain_masks<Value>;
  }
}

/// The instructions that make the masks here.
inline mask_instructions best_mask_instructions() {
  for (auto const which : {mask_instructions::avx512, mask_instructions::avx2}) {
    if (processor_has(which)) {
      return which;
    }
  }
  return mask_instructions::plain;
}

/// Which values have a magnitude whose pattern is at least `reach`, of `count` blocks of 64: value i of a block is bit
/// i of its mask. On the host.
template <gradient_value Value>
void magnitude_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
  static mask_kernel<Value> const kernel = mask_kernel_with<Value>(best_mask_instructions());
  kernel(from, count, reach, masks);
}

#else

inline bool processor_has(mask_instructions which) {
  return which == mask_instructions::plain;
}

inline mask_instructions best_mask_instructions() {
  return mask_instructions::plain;
}

template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void magnitude_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
  plain_masks(from, count, reach, masks);
}

#endif

} // namespace oktopk::detail
