// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/execution.hpp>

#include <cstdint>

// Directions: gradients over the root of their second moments, which are products of a row's and of a column's. How an
// accumulator is made of them, and what undoes it in the sums. `training/second_moments.hpp` has the statistics.
namespace oktopk::detail {

/// A tensor as a matrix: its first dimension and the rest. One that has a single row or column is a row, and has a
/// statistic for each value.
struct matrix_place {
  std::int64_t begin = 0; ///< of its values in the vector
  std::int64_t rows = 0;
  std::int64_t width = 0;       ///< values of a row
  std::int64_t statistics = 0;  ///< the place of its first one: one a row, unless there is one row, then one a column
  std::int64_t tiles = 0;       ///< the number of the first one
  std::int64_t row_sums = 0;    ///< the place of its sums of a tile's rows: for each row, of each tile
  std::int64_t column_sums = 0; ///< the same of columns: for each row of tiles, of each column

  KOKKOS_INLINE_FUNCTION bool has_row_statistics() const { return rows > 1; }
  KOKKOS_INLINE_FUNCTION std::int64_t column_statistics() const { return statistics + (rows > 1 ? rows : 0); }
};

/// The last place that begins at `position` or before it, by that member.
KOKKOS_INLINE_FUNCTION matrix_place const& place_of(matrix_place const* places, std::int64_t count,
                                                    std::int64_t matrix_place::*begin, std::int64_t position) {
  std::int64_t low = 0;
  std::int64_t high = count;
  while (high - low > 1) {
    std::int64_t const middle = (low + high) / 2;
    (places[middle].*begin <= position ? low : high) = middle;
  }
  return places[low];
}

/// Loops of so many values are independent of each other: compilers make vector instructions of them.
inline constexpr int independent_values = 8;

/// The least factor of a direction: what has had no gradient yet keeps one.
template <class Value>
inline constexpr Value least_factor = static_cast<Value>(1e-5);

template <class Value>
KOKKOS_INLINE_FUNCTION Value factor_of(Value root) {
  return root > least_factor<Value> ? root : least_factor<Value>;
}

/// The terms of accumulators of directions, beside residual, gradient and its scale: in memory of kernels. An accumulator
/// is what waits, with the factors of now in place of those of before, and a direction times its factor, v^(1/4).
template <class Value>
struct direction_terms {
  matrix_place const* places = nullptr;  ///< null: accumulators are of gradients
  std::int64_t count = 0;                ///< of places
  Value const* inverse_before = nullptr; ///< inverse fourth roots of the step before
  Value const* after = nullptr;          ///< fourth roots: a row's times a column's is that of v
  Value const* corrections = nullptr;    ///< of each place: a root's square times this is the root of the second moment
  Value kept = 1;                        ///< of the residual
  Value epsilon = 0;
  bool with_avx2 = false;

  /// A value and its neighbours in the same row of its matrix.
  struct row_part {
    std::int64_t left; ///< values from here to the end of the row
    Value correction;
    Value row_before;
    Value row_after;
    Value const* columns_before;
    Value const* columns_after;

    KOKKOS_INLINE_FUNCTION Value formed(direction_terms const& by, std::int64_t i, Value waiting,
                                        Value gradient) const {
      Value const inverse = row_before * columns_before[i];
      constexpr Value most = 1 / least_factor<Value>;
      Value const waits = by.kept * waiting * (inverse < most ? inverse : most);
      Value const root = row_after * columns_after[i];
      return factor_of(root) * (waits + gradient / (root * root * correction + by.epsilon));
    }
  };

  KOKKOS_INLINE_FUNCTION row_part part_at(std::int64_t position) const {
    matrix_place const& of = place_of(places, count, &matrix_place::begin, position);
    std::int64_t const row = (position - of.begin) / of.width;
    std::int64_t const column = (position - of.begin) % of.width;
    bool const has_rows = of.has_row_statistics();
    return {of.width - column,
            corrections[&of - places],
            has_rows ? inverse_before[of.statistics + row] : Value(1),
            has_rows ? after[of.statistics + row] : Value(1),
            inverse_before + of.column_statistics() + column,
            after + of.column_statistics() + column};
  }

  KOKKOS_INLINE_FUNCTION Value formed(std::int64_t position, Value waiting, Value gradient) const {
    return part_at(position).formed(*this, 0, waiting, gradient);
  }

  /// Writes the accumulators from `begin` to `end`. The arrays are whole, and do not overlap.
  KOKKOS_INLINE_FUNCTION void form(Value const* residual, Value const* gradient, Value scale, Value* accumulator,
                                   std::int64_t begin, std::int64_t end) const {
    with_avx2 ? form_with_avx2(residual, gradient, scale, accumulator, begin, end)
              : form_all(residual, gradient, scale, accumulator, begin, end);
  }

private:
  OKTOPK_FOR_AVX2 void form_with_avx2(Value const* residual, Value const* gradient, Value scale, Value* accumulator,
                                      std::int64_t begin, std::int64_t end) const {
    form_all(residual, gradient, scale, accumulator, begin, end);
  }

  KOKKOS_FORCEINLINE_FUNCTION void form_all(Value const* residual, Value const* gradient, Value scale,
                                            Value* accumulator, std::int64_t begin, std::int64_t end) const {
    while (begin < end) {
      row_part const part = part_at(begin);
      std::int64_t const left = part.left < end - begin ? part.left : end - begin;
      constexpr int lanes = independent_values;
      std::int64_t i = 0;
      for (; i + lanes <= left; i += lanes) {
        Value values[lanes];
        for (int lane = 0; lane < lanes; ++lane) {
          values[lane] = part.formed(*this, i + lane, residual[begin + i + lane], scale * gradient[begin + i + lane]);
        }
        for (int lane = 0; lane < lanes; ++lane) {
          accumulator[begin + i + lane] = values[lane];
        }
      }
      for (; i < left; ++i) {
        accumulator[begin + i] = part.formed(*this, i, residual[begin + i], scale * gradient[begin + i]);
      }
      begin += left;
    }
  }
};

/// The factor of a value.
template <class Value>
struct direction_factor {
  matrix_place const* places;
  std::int64_t count;
  Value const* roots;

  KOKKOS_INLINE_FUNCTION Value operator()(std::int64_t i) const {
    matrix_place const& of = place_of(places, count, &matrix_place::begin, i);
    std::int64_t const row = (i - of.begin) / of.width;
    std::int64_t const column = (i - of.begin) % of.width;
    Value const of_row = of.has_row_statistics() ? roots[of.statistics + row] : Value(1);
    return factor_of(of_row * roots[of.column_statistics() + column]);
  }
};

} // namespace oktopk::detail
