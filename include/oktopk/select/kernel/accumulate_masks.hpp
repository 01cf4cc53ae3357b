// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/kernel/magnitude_mask.hpp>

#include <cstddef>
#include <cstdint>

namespace oktopk::detail {

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

template <gradient_value Value>
KOKKOS_INLINE_FUNCTION void accumulate_masks(Value const* residual, Value const* gradient, Value rate,
                                             Value* accumulator, int count, bits_of<Value> reach,
                                             std::uint64_t* masks) {
  plain_accumulate_masks(residual, gradient, rate, accumulator, count, reach, masks);
}

#endif

} // namespace oktopk::detail
