// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

// The one place that knows vector instructions. It asks the processor for them, when the program runs, and not the
// flags of the compiler: translation units with different -m flags have the same definitions and may be linked
// together. Compilers for a device get the portable way: for them these are calls to functions of the host from
// functions of both. Registers wider than those of AVX2 gain nothing, for memory is slower.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define OKTOPK_MASKS_BY_PROCESSOR
#endif

namespace oktopk::detail {

/// Values that one mask tells of.
inline constexpr int mask_width = 64;

/// A bit for each of 64 values, set where the pattern of its magnitude is at least `reach`, itself the pattern of a
/// magnitude; value i is bit i.
///
/// Patterns of magnitudes leave the sign bit free, so they compare as signed integers do, the only ones that older
/// vector instructions compare. Not as floating-point numbers: NaN must reach everything, and denormals count.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION std::uint64_t magnitude_mask(Value const* from, bits_of<Value> reach) {
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

/// The masks of `count` blocks of 64 values, with instructions that every processor of its kind has.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void plain_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
  for (int block = 0; block < count; ++block) {
    masks[block] = magnitude_mask(from + block * mask_width, reach);
  }
}

/// Forms `count` blocks of 64 values, accumulator = residual + rate * gradient, and their masks (`magnitude_masks`).
/// The arrays do not overlap. With instructions that every processor of its kind has.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void plain_accumulate_masks(Value const* __restrict residual, Value const* __restrict gradient,
                                                   Value rate, Value* __restrict accumulator, int count,
                                                   bits_of<Value> reach, std::uint64_t* masks) {
  for (int i = 0; i < count * mask_width; ++i) {
    accumulator[i] = residual[i] + rate * gradient[i];
  }
  plain_masks<Value>(accumulator, count, reach, masks);
}

#if defined(OKTOPK_MASKS_BY_PROCESSOR)

// The compiler's own vectors and functions, for <immintrin.h> would take a fifth of the compiler's memory.
template <class Element>
struct avx2_vector {
  using type [[gnu::vector_size(32)]] = Element;
};

/// The masks of `count` blocks of 64 values, which lie in memory, or are formed as accumulators where `gradient` is
/// given: then each is formed and looked at in one register. AVX2 has no fused multiply-add, so the values have the
/// same bits as those of the plain code, unless the compiler's flags allow it there: see `accumulation`.
template <bool Forms, gradient_value Value>
[[gnu::target("avx2")]] inline void avx2_masks(Value const* from, [[maybe_unused]] Value const* gradient,
                                               [[maybe_unused]] Value rate, [[maybe_unused]] Value* accumulator,
                                               int count, bits_of<Value> reach, std::uint64_t* masks) {
  using values = typename avx2_vector<Value>::type;
  using lane = std::conditional_t<sizeof(Value) == 4, int, long long>; // the builtin functions take no other integers
  using integers = typename avx2_vector<lane>::type;
  constexpr int lanes = 32 / sizeof(Value);
  constexpr int line = 64 / sizeof(Value); // of the cache
  for (int block = 0; block < count; ++block) {
    // What reads ahead by itself stops at the end of a page and while the candidates of some blocks are written; two
    // pages ahead is far enough to hide that, and past the end of an array it does no harm.
    for (int at = 0; !Forms && at < mask_width; at += line) {
      __builtin_prefetch(from + std::ptrdiff_t(8192 / sizeof(Value)) + at);
    }
    std::uint64_t mask = 0;
    for (int part = 0; part < mask_width; part += lanes) {
      values x;
      __builtin_memcpy(&x, from + part, sizeof x);
      if constexpr (Forms) {
        values change;
        __builtin_memcpy(&change, gradient + part, sizeof change);
        x = x + rate * change;
        __builtin_memcpy(accumulator + part, &x, sizeof x);
      }
      // There is no other comparison than "above": with the pattern below, and nothing is below 0 but the negative.
      integers const over =
          (reinterpret_cast<integers>(x) & std::numeric_limits<lane>::max()) > static_cast<lane>(reach - 1);
      std::uint32_t bits = 0;
      if constexpr (sizeof(Value) == 4) {
        bits = static_cast<std::uint32_t>(__builtin_ia32_movmskps256(reinterpret_cast<values>(over)));
      } else {
        bits = static_cast<std::uint32_t>(__builtin_ia32_movmskpd256(reinterpret_cast<values>(over)));
      }
      mask |= std::uint64_t(bits) << part;
    }
    masks[block] = mask;
    from += mask_width;
    gradient += Forms ? mask_width : 0;
    accumulator += Forms ? mask_width : 0;
  }
}

#endif

/// The masks of `count` blocks of 64 values, with the best instructions of the processor.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void magnitude_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
#if defined(OKTOPK_MASKS_BY_PROCESSOR)
  if (processor_has_avx2()) {
    return avx2_masks<false, Value>(from, nullptr, 0, nullptr, count, reach, masks);
  }
#endif
  plain_masks(from, count, reach, masks);
}

/// The same of accumulators, which are formed as `plain_accumulate_masks` does.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void accumulate_masks(Value const* residual, Value const* gradient, Value rate,
                                             Value* accumulator, int count, bits_of<Value> reach,
                                             std::uint64_t* masks) {
#if defined(OKTOPK_MASKS_BY_PROCESSOR)
  if (processor_has_avx2()) {
    return avx2_masks<true, Value>(residual, gradient, rate, accumulator, count, reach, masks);
  }
#endif
  plain_accumulate_masks(residual, gradient, rate, accumulator, count, reach, masks);
}

} // namespace oktopk::detail
