// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

// The one place that knows vector instructions. It asks the processor for them, when the program runs, and not the
// flags of the compiler: translation units with different -m flags have the same definitions and may be linked
// together. Compilers for a device get the portable way: for them these are calls to functions of the host from
// functions of both.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#define OKTOPK_MASKS_BY_PROCESSOR
#endif

namespace oktopk::detail {

/// Values that one mask tells of.
inline constexpr int mask_width = 64;

enum class mask_instructions { plain, avx2, avx512 };

inline char const* name(mask_instructions which) {
  constexpr char const* names[] = {"plain code", "AVX2", "AVX-512"};
  return names[static_cast<int>(which)];
}

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

/// The masks of `count` blocks of 64 values, one after the other, with instructions that every processor of its kind
/// has.
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
  for (int block = 0; block < count; ++block) {
    for (int i = block * mask_width; i < (block + 1) * mask_width; ++i) {
      accumulator[i] = residual[i] + rate * gradient[i];
    }
    masks[block] = magnitude_mask<Value>(accumulator + block * mask_width, reach);
  }
}

#if defined(OKTOPK_MASKS_BY_PROCESSOR)

// The compiler's own vectors and functions, for <immintrin.h> would take a fifth of the compiler's memory.
template <class Integer, int Bytes>
struct vector_of {
  using type [[gnu::vector_size(Bytes)]] = Integer;
};

// An element of such a vector: the builtin functions take no other integers of this size.
template <class Value>
using lane_of = std::conditional_t<sizeof(Value) == 4, int, long long>;

// Loads from any address; the instructions are those of the function that it is inlined into.
template <class Vector, class Value>
[[gnu::always_inline]] inline void load_vector(Value const* from, Vector& to) {
  __builtin_memcpy(&to, from, sizeof(Vector));
}

/// Asks for the values of a block that will be looked at later. What reads ahead by itself stops at the end of a page
/// and while the candidates of some blocks are written; two pages ahead is far enough to hide that, and past the end of
/// an array it does no harm.
template <class Value>
[[gnu::always_inline]] inline void fetch_ahead(Value const* block) {
  constexpr std::ptrdiff_t ahead = 8192 / sizeof(Value);
  constexpr int of_a_line = 64 / sizeof(Value);
  for (int line = 0; line < mask_width; line += of_a_line) {
    __builtin_prefetch(block + ahead + line);
  }
}

// Each names the instructions that it may use, beside those of the compiler's flags.

template <gradient_value Value>
[[gnu::target("avx512f")]] inline void avx512_masks(Value const* from, int count, bits_of<Value> reach,
                                                    std::uint64_t* masks) {
  constexpr int not_less = 5;
  constexpr int lanes = 64 / sizeof(Value);
  using integers = typename vector_of<lane_of<Value>, 64>::type;
  integers const least = integers{} + static_cast<lane_of<Value>>(reach);
  for (int block = 0; block < count; ++block, from += mask_width) {
    fetch_ahead(from);
    std::uint64_t mask = 0;
    for (int part = 0; part < mask_width; part += lanes) {
      integers bits;
      load_vector(from + part, bits);
      bits &= std::numeric_limits<lane_of<Value>>::max();
      if constexpr (lanes == 16) {
        mask |= std::uint64_t(static_cast<std::uint16_t>(__builtin_ia32_cmpd512_mask(bits, least, not_less, 0xffff)))
                << part;
      } else {
        mask |= std::uint64_t(static_cast<std::uint8_t>(__builtin_ia32_cmpq512_mask(bits, least, not_less, 0xff)))
                << part;
      }
    }
    masks[block] = mask;
  }
}

/// The lanes of a vector whose magnitudes have patterns of at least `reach`, a bit each.
template <gradient_value Value>
[[gnu::target("avx2"), gnu::always_inline]] inline std::uint64_t
avx2_mask_of(typename vector_of<Value, 32>::type const& looked_at, bits_of<Value> reach) {
  using lane = lane_of<Value>;
  using integers = typename vector_of<lane, 32>::type;
  using values = typename vector_of<Value, 32>::type;
  // There is no other comparison than "above": with the pattern below, and nothing is below 0 but the negative.
  integers const over =
      (reinterpret_cast<integers>(looked_at) & std::numeric_limits<lane>::max()) > static_cast<lane>(reach - 1);
  if constexpr (sizeof(Value) == 4) {
    return static_cast<std::uint32_t>(__builtin_ia32_movmskps256(reinterpret_cast<values>(over)));
  } else {
    return static_cast<std::uint32_t>(__builtin_ia32_movmskpd256(reinterpret_cast<values>(over)));
  }
}

template <gradient_value Value>
[[gnu::target("avx2")]] inline void avx2_masks(Value const* from, int count, bits_of<Value> reach,
                                               std::uint64_t* masks) {
  constexpr int lanes = 32 / sizeof(Value);
  for (int block = 0; block < count; ++block, from += mask_width) {
    fetch_ahead(from);
    std::uint64_t mask = 0;
    for (int part = 0; part < mask_width; part += lanes) {
      typename vector_of<Value, 32>::type looked_at;
      load_vector(from + part, looked_at);
      mask |= avx2_mask_of<Value>(looked_at, reach) << part;
    }
    masks[block] = mask;
  }
}

/// True where this processor, and the system on it, runs these instructions.
inline bool processor_has(mask_instructions which) {
  __builtin_cpu_init();
  switch (which) {
  case mask_instructions::avx512: return __builtin_cpu_supports("avx512f") != 0;
  case mask_instructions::avx2: return __builtin_cpu_supports("avx2") != 0;
  default: return true;
  }
}

template <gradient_value Value>
using mask_kernel = void (*)(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks);

/// The masks of `count` blocks of 64 values with the instructions named.
template <gradient_value Value>
mask_kernel<Value> mask_kernel_with(mask_instructions which) {
  switch (which) {
  case mask_instructions::avx512: return avx512_masks<Value>;
  case mask_instructions::avx2: return avx2_masks<Value>;
  default: return plain_masks<Value>;
  }
}

inline mask_instructions best_mask_instructions() {
  for (auto const which : {mask_instructions::avx512, mask_instructions::avx2}) {
    if (processor_has(which)) {
      return which;
    }
  }
  return mask_instructions::plain;
}

/// A mask for each of `count` blocks of 64 values, as `magnitude_mask` makes one. On the host.
template <gradient_value Value>
void magnitude_masks(Value const* from, int count, bits_of<Value> reach, std::uint64_t* masks) {
  static mask_kernel<Value> const kernel = mask_kernel_with<Value>(best_mask_instructions());
  kernel(from, count, reach, masks);
}

/// The same with AVX2, each value formed and looked at in one register; wider registers gain nothing, for memory is
/// slower. AVX2 has no fused multiply-add, so the values have the same bits as those of the plain code, unless the
/// compiler's flags allow it there: see `accumulation`.
template <gradient_value Value>
[[gnu::target("avx2")]] inline void avx2_accumulate_masks(Value const* residual, Value const* gradient, Value rate,
                                                          Value* accumulator, int count, bits_of<Value> reach,
                                                          std::uint64_t* masks) {
  using values = typename vector_of<Value, 32>::type;
  constexpr int lanes = 32 / sizeof(Value);
  for (int block = 0; block < count; ++block) {
    std::uint64_t mask = 0;
    for (int part = 0; part < mask_width; part += lanes) {
      values formed;
      values change;
      load_vector(residual + part, formed);
      load_vector(gradient + part, change);
      formed = formed + rate * change;
      __builtin_memcpy(accumulator + part, &formed, sizeof formed);
      mask |= avx2_mask_of<Value>(formed, reach) << part;
    }
    masks[block] = mask;
    residual += mask_width;
    gradient += mask_width;
    accumulator += mask_width;
  }
}

/// The same with the best instructions of the processor.
template <gradient_value Value>
void accumulate_masks(Value const* residual, Value const* gradient, Value rate, Value* accumulator, int count,
                      bits_of<Value> reach, std::uint64_t* masks) {
  static bool const has_avx2 = processor_has(mask_instructions::avx2);
  (has_avx2 ? avx2_accumulate_masks<Value> : plain_accumulate_masks<Value>)(residual, gradient, rate, accumulator,
                                                                            count, reach, masks);
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

template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void accumulate_masks(Value const* residual, Value const* gradient, Value rate,
                                             Value* accumulator, int count, bits_of<Value> reach,
                                             std::uint64_t* masks) {
  plain_accumulate_masks(residual, gradient, rate, accumulator, count, reach, masks);
}

#endif

} // namespace oktopk::detail
