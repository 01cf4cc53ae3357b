// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>
#include <oktopk/core/workspace.hpp>

#include <cmath>
#include <limits>
#include <utility>

namespace oktopk::detail {

/// value * 2^exponent, of any magnitude: norms of doubles, and quotients of them, may leave the range of a double.
struct wide_number {
  double value = 0; ///< 0, of magnitude in [0.5, 1), or not finite
  int exponent = 0;

  static wide_number of(double number, int exponent = 0) {
    int own = 0;
    double const value = std::frexp(number, &own);
    return {value, is_finite(number) ? own + exponent : 0};
  }

  explicit operator double() const { return std::ldexp(value, exponent); }

  /// True if a `Value` would hold fewer digits of it, or none.
  template <gradient_value Value>
  bool underflows() const {
    return value != 0 && std::abs(static_cast<double>(*this)) < static_cast<double>(std::numeric_limits<Value>::min());
  }

  friend wide_number operator*(wide_number a, wide_number b) { return of(a.value * b.value, a.exponent + b.exponent); }
  friend wide_number operator/(wide_number a, wide_number b) { return of(a.value / b.value, a.exponent - b.exponent); }

  /// The norm of two vectors together, from theirs; exactly the other one where one is 0.
  friend wide_number hypot(wide_number a, wide_number b) {
    if (a.value == 0 || (b.value != 0 && b.exponent > a.exponent)) {
      std::swap(a, b);
    }
    return of(std::hypot(a.value, std::ldexp(b.value, b.exponent - a.exponent)), a.exponent);
  }
};

inline constexpr std::int64_t norm_block = 1024;

template <execution_space E, class Vector, gradient_value Value>
struct block_sum_of_squares {
  Vector values;
  std::int64_t size;
  std::int64_t count; ///< of blocks
  double scale;       ///< of the values, a power of 2
  double* sums;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    // Threads of a device that run together read neighbours; a core of a CPU reads its block from end to end.
    std::int64_t const step = is_device<E> ? count : 1;
    std::int64_t const begin = is_device<E> ? block : block * norm_block;
    std::int64_t const block_end = begin + norm_block < size ? begin + norm_block : size;
    std::int64_t const end = is_device<E> ? size : block_end;
    double parts[4] = {0, 0, 0, 0};
    int part = 0;
    for (std::int64_t i = begin; i < end; i += step) {
      double const value = scale * static_cast<double>(static_cast<Value>(values(i)));
      parts[part] += value * value;
      part = (part + 1) % 4;
    }
    sums[block] = (parts[0] + parts[1]) + (parts[2] + parts[3]);
  }
};

struct block_sum_of_sums {
  double const* from;
  std::int64_t size;
  double* sums;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t block) const {
    std::int64_t const begin = block * norm_block;
    std::int64_t const end = begin + norm_block < size ? begin + norm_block : size;
    double sum = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      sum += from[i];
    }
    sums[block] = sum;
  }
};

/// Euclidean norm of a vector, with the same bits in every run and with any number of threads.
///
/// Blocks of 1,024 squares are summed in double precision, then blocks of these sums, and so on: reads the vector once,
/// and allocates room for its blocks on the first call. `Vector` is a rank-1 view that the execution space reaches, of
/// any type that converts to `Value`. Where the squares overflow or underflow, the vector is read a second time, with
/// its values scaled by a power of 2. The norm is not finite where a value is not.
template <execution_space E, gradient_value Value>
class norm_in_order {
public:
  using memory_space = typename E::memory_space;

  /// Waits for `exec`.
  template <class Vector>
  wide_number of(E const& exec, Vector const& values) {
    if (values.extent(0) == 0) {
      return {};
    }
    double const sum = sum_of_squares(exec, values, 1);
    // Squares below 2^-1022 lose digits. Where the sum is 2^-900 or more, 2^38 of them do not matter.
    if (sum >= 0x1p-900 && is_finite(sum)) {
      return wide_number::of(std::sqrt(sum));
    }
    // The largest double becomes 2^484, the smallest 2^-474, so no sum of 2^38 squares leaves the range.
    int const exponent = sum < 1 ? -600 : 540;
    return wide_number::of(std::sqrt(sum_of_squares(exec, values, std::ldexp(1.0, -exponent))), exponent);
  }

  /// The factor that scales the vector down to the norm `most`; 1 if its norm is not larger, if `most` is 0, or if a
  /// value is not finite. With `together`, the norm is that of the vectors whose norm it holds and of this one, and
  /// `together` becomes it. Waits for `exec`.
  template <class Vector>
  wide_number factor_to(E const& exec, Vector const& values, double most, wide_number* together = nullptr) {
    if (most > 0) {
      wide_number norm = of(exec, values);
      if (together != nullptr) {
        norm = *together = hypot(*together, norm);
      }
      if (norm.value > 0 && is_finite(norm.value)) { // a program may trap a division by 0
        wide_number const factor = wide_number::of(most) / norm;
        return factor.exponent <= 0 ? factor : wide_number::of(1); // of numbers that are less than 1
      }
    }
    return wide_number::of(1);
  }

private:
  template <class Vector>
  double sum_of_squares(E const& exec, Vector const& values, double scale) {
    auto const size = static_cast<std::int64_t>(values.extent(0));
    std::int64_t count = blocks_of(size);
    sums_.reserve(exec, count);
    next_.reserve(exec, count); // `sums_` and `next_` are swapped
    Kokkos::parallel_for("oktopk::training::sum_squares", index_range<E>(exec, 0, count),
                         block_sum_of_squares<E, Vector, Value>{values, size, count, scale, sums_.data()});
    while (count > 1) {
      Kokkos::parallel_for("oktopk::training::sum_blocks", index_range<E>(exec, 0, blocks_of(count)),
                           block_sum_of_sums{sums_.data(), count, next_.data()});
      std::swap(sums_, next_);
      count = blocks_of(count);
    }
    double total = 0;
    Kokkos::deep_copy(exec, array_ref<double, Kokkos::HostSpace>(&total, 1),
                      array_ref<double const, memory_space>(sums_.data(), 1));
    fence(exec, "oktopk::training::norm");
    return total;
  }

  static std::int64_t blocks_of(std::int64_t size) { return (size + norm_block - 1) / norm_block; }

  buffer<double, memory_space> sums_{"oktopk::training::norm::sums"};
  buffer<double, memory_space> next_{"oktopk::training::norm::next_sums"};
};

} // namespace oktopk::detail
