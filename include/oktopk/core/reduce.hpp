// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>

// The operations of reductions as kernels see them. Each gives the same bits whichever operand comes first, NaN where
// either is NaN: so ranks that meet in different order agree, and a bad value reaches all of them.
namespace oktopk::detail {

struct add {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value a, Value b) {
    return a + b;
  }
};

/// Replaces a value, for decoding: no reduction, since the second operand counts alone.
struct replace {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value, Value b) {
    return b;
  }
};

struct larger {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value a, Value b) {
    Value const tie = detail::sign_bit(a) ? b : a; // zeros of either sign are equal
    return a > b ? a : (b > a ? b : (a == b ? tie : a + b));
  }
};

struct smaller {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value a, Value b) {
    Value const tie = detail::sign_bit(a) ? a : b;
    return a < b ? a : (b < a ? b : (a == b ? tie : a + b));
  }
};

} // namespace oktopk::detail
