// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/format/values/concept.hpp>

/// Values of a block one after the other, as they are.
struct plain_values {
  static constexpr bool lossless = true;
  static std::string name() { return "plain"; }

  template <oktopk::gradient_value Value>
  KOKKOS_INLINE_FUNCTION static int most_bytes(int count) {
    return count * static_cast<int>(sizeof(Value));
  }

  template <oktopk::gradient_value Value>
  KOKKOS_INLINE_FUNCTION static std::byte* encode(Value const* values, int count, std::byte* out) {
    for (int i = 0; i < count; ++i) {
      __builtin_memcpy(out + i * static_cast<int>(sizeof(Value)), values + i, sizeof(Value));
    }
    return out + most_bytes<Value>(count);
  }

  template <oktopk::gradient_value Value>
  KOKKOS_INLINE_FUNCTION static std::byte const* decode(std::byte const* in, std::byte const* end, int count,
                                                        Value* values) {
    if (end - in < most_bytes<Value>(count)) {
      return nullptr;
    }
    for (int i = 0; i < count; ++i) {
      __builtin_memcpy(values + i, in + i * static_cast<int>(sizeof(Value)), sizeof(Value));
    }
    return in + most_bytes<Value>(count);
  }
};
