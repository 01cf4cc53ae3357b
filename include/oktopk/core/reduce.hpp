// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/kokkos_ext/execution.hpp>

#include <algorithm>
#include <span>

// Reductions of values, on the host and in kernels. Each gives the same bits for both orders of its operands, and NaN if
// one of them is NaN. So ranks that meet in different order agree, and a bad value reaches all of them.
namespace oktopk {

/// Element-wise operation of a reduction.
enum class reduction : std::uint8_t { sum, min, max };

namespace detail {

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

/// A value as an integer in the order of the numbers: -0 is below 0, and every NaN is the greatest integer, or the
/// least. A maximum or minimum of such integers has the same bits whatever the order of its operands, and no option of
/// a compiler changes what a NaN does.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION constexpr signed_bits_of<Value> to_order(Value x, bool nan_is_greatest) {
  using integer = signed_bits_of<Value>;
  constexpr integer greatest = std::numeric_limits<integer>::max();
  if (magnitude_bits(x) > infinity_bits<Value>) {
    return nan_is_greatest ? greatest : -greatest - 1;
  }
  auto const pattern = __builtin_bit_cast(integer, x);
  return pattern < 0 ? pattern ^ greatest : pattern;
}

/// The value that `to_order` made the integer from; of any NaN, one and the same NaN.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION constexpr Value from_order(signed_bits_of<Value> place) {
  constexpr signed_bits_of<Value> greatest = std::numeric_limits<signed_bits_of<Value>>::max();
  return __builtin_bit_cast(Value, place < 0 ? place ^ greatest : place);
}

/// Replaces values by their integers, in the same memory.
template <gradient_value Value>
struct ordering {
  Value* values;
  bool nan_is_greatest;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    values[i] = __builtin_bit_cast(Value, to_order(values[i], nan_is_greatest));
  }
};

/// Replaces the integers by the values.
template <gradient_value Value>
struct ordering_back {
  Value* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    values[i] = from_order<Value>(__builtin_bit_cast(signed_bits_of<Value>, values[i]));
  }
};

struct larger {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value a, Value b) {
    auto const x = to_order(a, true);
    auto const y = to_order(b, true);
    return from_order<Value>(x > y ? x : y);
  }
};

struct smaller {
  template <gradient_value Value>
  KOKKOS_INLINE_FUNCTION static Value of(Value a, Value b) {
    auto const x = to_order(a, false);
    auto const y = to_order(b, false);
    return from_order<Value>(x < y ? x : y);
  }
};

/// One element of a reduction. Sums of integers that overflow wrap around: damaged numbers may give any sum.
template <class T>
T reduce_two(reduction op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (op != reduction::sum) {
      return op == reduction::min ? std::min(a, b) : std::max(a, b);
    }
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
  } else {
    return op == reduction::sum ? a + b : op == reduction::max ? larger::of(a, b) : smaller::of(a, b);
  }
}

/// Makes host values ready for a library whose own maxima and minima lose a NaN or give ranks other bits, as those of
/// MPI and Gloo do: it reduces the integers of `to_order`. Sums are left as they are.
template <gradient_value T>
void to_order(std::span<T> values, reduction op) {
  ordering<T> const each{values.data(), op == reduction::max};
  for (std::int64_t i = 0; i < (op == reduction::sum ? 0 : std::ssize(values)); ++i) {
    each(i);
  }
}

/// The values that came out.
template <gradient_value T>
void from_order(std::span<T> values, reduction op) {
  ordering_back<T> const each{values.data()};
  for (std::int64_t i = 0; i < (op == reduction::sum ? 0 : std::ssize(values)); ++i) {
    each(i);
  }
}

template <class Operation, gradient_value Value>
struct value_combination {
  Value const* from;
  Value* into;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const { into[i] = Operation::of(into[i], from[i]); }
};

/// Calls `body` with the operation as an object, so that kernels are compiled for each.
template <class Body>
void with_reduction(reduction op, Body const& body) {
  switch (op) {
  case reduction::sum: return body(add{});
  case reduction::max: return body(larger{});
  case reduction::min: return body(smaller{});
  }
}

/// Enqueues `into = into op from`, element by element.
template <execution_space E, gradient_value Value>
void combine(E const& exec, reduction op, Value const* from, std::int64_t count, Value* into) {
  with_reduction(op, [&](auto operation) {
    Kokkos::parallel_for("oktopk::dense::combine", index_range<E>(exec, 0, count),
                         value_combination<decltype(operation), Value>{from, into});
  });
}

} // namespace detail
} // namespace oktopk
