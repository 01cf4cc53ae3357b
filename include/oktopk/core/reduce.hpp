// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/concepts.hpp>

// The operations of reductions in kernels. Each gives the same bits for both orders of its operands, and NaN if one of
// them is NaN. So ranks that meet in different order agree, and a bad value reaches all of them.
namespace oktopk::detail {

struct add {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value a, Value b) {
    return a + b;
  }
};

/// Replaces a value, for decoding. This is no reduction, since only the second operand counts.
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
