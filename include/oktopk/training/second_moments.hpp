// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/comm/agreement.hpp>
#include <oktopk/core/workspace.hpp>
#include <oktopk/dense/rabenseifner.hpp>
#include <oktopk/sparse/directions.hpp>
#include <oktopk/training/feedback.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <utility>

// Means of squared gradients by the rows and columns of matrices, the same on all ranks: what `adam` divides by before
// the residual takes a gradient. Row and column statistics are Adafactor's (Shazeer and Stern, ICML 2018, section 3).
namespace oktopk::detail {

/// Dimensions of the tensors that lie one after the other in a vector.
using tensor_shapes = std::vector<std::vector<std::int64_t>>;

/// The sentence that says what is wrong with shapes of a vector of `length` values; empty if nothing is.
inline std::string problem_of(tensor_shapes const& shapes, std::int64_t length) {
  std::int64_t left = length;
  for (std::vector<std::int64_t> const& shape : shapes) {
    std::int64_t values = 1;
    for (std::int64_t const each : shape) {
      if (each < 0) {
        return "a shape has a dimension of " + std::to_string(each);
      }
      values = each != 0 && values > left / each ? left + 1 : values * each; // more than are left, however many
    }
    if (values > left) {
      return "the shapes have more values than the vector, which has " + std::to_string(length);
    }
    left -= values;
  }
  return left == 0
             ? ""
             : "the shapes have " + std::to_string(length - left) + " values, and the vector " + std::to_string(length);
}

/// A tensor as a matrix, with its places behind those of the tensors before it.
inline matrix_place place_behind(matrix_place const& end, std::vector<std::int64_t> const& shape) {
  matrix_place made = end;
  made.rows = 1;
  made.width = 0;
  if (std::find(shape.begin(), shape.end(), 0) == shape.end()) {
    std::int64_t const values = std::accumulate(shape.begin(), shape.end(), std::int64_t(1), std::multiplies<>());
    made.rows = shape.size() < 2 ? 1 : shape.front();
    made.width = values / made.rows;
  }
  if (made.width == 1) {
    std::swap(made.rows, made.width);
  }
  return made;
}

/// The number of statistics of a tensor.
inline std::int64_t statistics_of(std::vector<std::int64_t> const& shape) {
  matrix_place const of = place_behind({}, shape);
  return of.column_statistics() + of.width;
}

/// What second moments carry from one step to the next, of tensors one after the other; a plain value.
template <gradient_value Value>
struct moments_state {
  std::vector<Value> squares;      ///< running means of squares: those of a matrix's rows, then of its columns
  std::vector<std::int64_t> rows;  ///< of each tensor as a matrix
  std::vector<std::int64_t> steps; ///< of each tensor

  /// Zeros for tensors of these shapes.
  static moments_state of(tensor_shapes const& shapes) {
    moments_state made;
    matrix_place end;
    for (auto const& shape : shapes) {
      made.rows.push_back(place_behind(end, shape).rows);
      end.statistics += statistics_of(shape);
    }
    made.squares.resize(static_cast<std::size_t>(end.statistics));
    made.steps.resize(shapes.size());
    return made;
  }

  /// The sentence that says what is wrong with it for tensors of these shapes; empty if nothing is.
  std::string problem(tensor_shapes const& shapes) const {
    moments_state const expected = of(shapes);
    constexpr std::int64_t most_steps = std::numeric_limits<std::int64_t>::max() / 2;
    bool const is_sound =
        squares.size() == expected.squares.size() && rows == expected.rows && steps.size() == shapes.size() &&
        std::all_of(squares.begin(), squares.end(), [](Value each) { return is_finite(each) && each >= 0; }) &&
        std::all_of(steps.begin(), steps.end(), [](std::int64_t each) { return each >= 0 && each <= most_steps; });
    return is_sound ? "" : "the saved second moments are of other tensors, or damaged";
  }

  /// The same on all ranks.
  void add_facts(agreement& terms) const {
    fnv1a all;
    all.add(squares.data(), squares.size() * sizeof(Value));
    all.add(steps.data(), steps.size() * sizeof(std::int64_t));
    terms.fact("digest of the second moments", all.value());
  }
};

/// Options of directions; the same on all ranks.
struct direction_options {
  double beta2 = 0.999;  ///< decay of the mean of squares, in [0, 1)
  double epsilon = 1e-8; ///< beside the root of the second moment
  tensor_shapes
      shapes{}; ///< dimensions of the tensors that lie one after the other in the vector; none: one of all values

  /// The sentence that says what is wrong with these options beside the others, for values of this type; empty if nothing
  /// is.
  template <gradient_value Value>
  std::string problem(error_feedback_options const& how) const {
    if (how.momentum != 0) {
      return "directions that have waited are averages already, so they take no momentum";
    }
    if (!is_finite_magnitude(beta2) || beta2 >= 1) {
      return "beta2 = " + decimal_text(beta2) + " is not in [0, 1)";
    }
    if (!is_finite_magnitude(epsilon) || epsilon == 0) {
      return "epsilon = " + decimal_text(epsilon) + " is not positive and finite";
    }
    std::string const sentence = decay_fault<Value>("beta2", beta2);
    return sentence.empty() ? value_fault<Value>("epsilon", epsilon) : sentence;
  }

  void add_facts(agreement& terms) const {
    fnv1a all;
    for (auto const& shape : shapes) {
      all.add(shape.data(), shape.size() * sizeof(std::int64_t));
      all.add("x", 1);
    }
    terms.fact("beta2", beta2).fact("epsilon", epsilon).fact("shapes", shapes.size());
    terms.fact("digest of the shapes", all.value());
  }
};

/// The rows and columns of a matrix that one thread reads: threads of a device must be many, and a core keeps the sums of
/// its columns in its first cache.
template <execution_space E>
struct tile {
  static constexpr std::int64_t rows = is_device<E> ? 16 : 64;
  static constexpr std::int64_t width = is_device<E> ? 64 : 1024;

  KOKKOS_INLINE_FUNCTION static std::int64_t down(std::int64_t count) { return (count + rows - 1) / rows; }
  KOKKOS_INLINE_FUNCTION static std::int64_t across(std::int64_t count) { return (count + width - 1) / width; }
};

/// Writes the sums of squares of a tile's rows and columns.
template <execution_space E, class Gradient, gradient_value Value>
struct tile_squares {
  matrix_place const* places;
  std::int64_t count; ///< of places
  Gradient gradient;
  Value scale;
  Value* row_sums;
  Value* column_sums;
  bool with_avx2;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t number) const { with_avx2 ? sum_with_avx2(number) : sum(number); }

  OKTOPK_FOR_AVX2 void sum_with_avx2(std::int64_t number) const { sum(number); }

  KOKKOS_FORCEINLINE_FUNCTION void sum(std::int64_t number) const {
    matrix_place const& of = place_of(places, count, &matrix_place::tiles, number);
    std::int64_t const across = tile<E>::across(of.width);
    std::int64_t const down = (number - of.tiles) / across;
    std::int64_t const right = (number - of.tiles) % across;
    std::int64_t const first_row = down * tile<E>::rows;
    std::int64_t const first_column = right * tile<E>::width;
    std::int64_t const rows = of.rows - first_row < tile<E>::rows ? of.rows - first_row : tile<E>::rows;
    std::int64_t const width = of.width - first_column < tile<E>::width ? of.width - first_column : tile<E>::width;
    Value* const sums = column_sums + of.column_sums + down * of.width + first_column;
    for (std::int64_t column = 0; column < width; ++column) {
      sums[column] = 0;
    }
    constexpr int lanes = independent_values;
    for (std::int64_t row = 0; row < rows; ++row) {
      std::int64_t const begin = of.begin + (first_row + row) * of.width + first_column;
      Value parts[lanes] = {};
      std::int64_t column = 0;
      for (; column + lanes <= width; column += lanes) {
        Value squares[lanes];
        for (int lane = 0; lane < lanes; ++lane) {
          squares[lane] = square_at(begin + column + lane);
        }
        for (int lane = 0; lane < lanes; ++lane) {
          parts[lane] += squares[lane];
        }
        for (int lane = 0; lane < lanes; ++lane) {
          squares[lane] += sums[column + lane];
        }
        for (int lane = 0; lane < lanes; ++lane) {
          sums[column + lane] = squares[lane];
        }
      }
      for (; column < width; ++column) {
        Value const square = square_at(begin + column);
        sums[column] += square;
        parts[0] += square;
      }
      if (of.has_row_statistics()) {
        row_sums[of.row_sums + (first_row + row) * across + right] =
            ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
      }
    }
  }

  KOKKOS_INLINE_FUNCTION Value square_at(std::int64_t i) const {
    Value const value = scale * static_cast<Value>(gradient(i));
    return value * value;
  }
};

/// Advances a statistic by the mean of squares of its row or column.
template <execution_space E, gradient_value Value>
struct statistic_advance {
  matrix_place const* places;
  std::int64_t count;
  Value const* row_sums;
  Value const* column_sums;
  Value const* now;
  Value* next;
  Value beta2;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    matrix_place const& of = place_of(places, count, &matrix_place::statistics, i);
    bool const is_row = i < of.column_statistics();
    std::int64_t const number = i - (is_row ? of.statistics : of.column_statistics());
    std::int64_t const across = tile<E>::across(of.width);
    std::int64_t const parts = is_row ? across : tile<E>::down(of.rows);
    Value const* const sums = is_row ? row_sums + of.row_sums + number * across : column_sums + of.column_sums + number;
    std::int64_t const step = is_row ? 1 : of.width;
    Value sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) {
      sum += sums[part * step];
    }
    next[i] = beta2 * now[i] + (1 - beta2) * (sum / static_cast<Value>(is_row ? of.width : of.rows));
  }
};

/// Fourth roots of statistics, those of rows over the mean of their matrix: a row's times a column's is the fourth root
/// of the second moment of a value.
template <gradient_value Value>
struct fourth_roots {
  matrix_place const* places;
  std::int64_t count;
  Value const* statistics;
  Value const* means; ///< of the rows of each place
  Value* roots;
  Value* inverse_roots;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    matrix_place const& of = place_of(places, count, &matrix_place::statistics, i);
    Value const mean = i < of.column_statistics() ? means[&of - places] : Value(1);
    Value const root = mean > 0 ? std::sqrt(std::sqrt(statistics[i] / mean)) : Value(0);
    roots[i] = root;
    inverse_roots[i] = root > 0 ? 1 / root : 1 / least_factor<Value>;
  }
};

/// Second moments of the values of a vector of tensors, by rows and columns, and averaged over the ranks in each step.
///
/// With a_i and b_j, the running means of the squares of row i and of column j, that of a value is a_i b_j over the mean
/// of all a_i; a tensor of one dimension has one a value. A direction is g / (sqrt(v) + epsilon), and its factor v^(1/4):
/// entries of the largest direction times factor are those whose move gains most.
///
/// Holds eight numbers a statistic, and sums of tiles: in all some hundredth of the vector. A step of statistics is
/// one dense sum of them on the host: `rabenseifner`, which see for words and messages. The same on all ranks to the bit.
template <execution_space E, communicator Comm, gradient_value Value>
class second_moments {
  using memory_space = typename E::memory_space;
  using host_space = Kokkos::DefaultHostExecutionSpace;
  using array = buffer<Value, memory_space>;

public:
  /// Of shapes without a problem.
  second_moments(E const& exec, tensor_shapes const& shapes) : exec_(exec) {
    for (std::size_t tensor = 0; tensor < shapes.size(); ++tensor) {
      matrix_place const made = place_behind(end_, shapes[tensor]);
      std::int64_t const values = made.rows * made.width;
      if (values == 0) {
        continue;
      }
      std::int64_t const down = tile<E>::down(made.rows);
      std::int64_t const across = tile<E>::across(made.width);
      host_places_.push_back(made);
      tensors_.push_back(tensor);
      end_.begin += values;
      end_.statistics = made.column_statistics() + made.width;
      end_.tiles += down * across;
      end_.row_sums += made.has_row_statistics() ? made.rows * across : 0;
      end_.column_sums += down * made.width;
    }
    places_.reserve(exec, count());
    copy_to_device(host_places_.data(), count(), places_.data());
    row_sums_.reserve(exec, end_.row_sums);
    column_sums_.reserve(exec, end_.column_sums);
    means_.reserve(exec, count());
    corrections_.reserve(exec, count());
    for (array* const each : {&now_, &next_, &roots_, &next_roots_, &inverse_roots_, &next_inverse_roots_}) {
      each->reserve(exec, end_.statistics);
    }
    restore(moments_state<Value>::of(shapes));
  }

  std::int64_t size() const { return end_.statistics; }

  /// Statistics with one more gradient, averaged over the ranks; `keep` makes them those of now. Those of tensors in
  /// `withheld` ranges stay, to the bit. Collective. False on every rank where they are not finite, or a rank has no
  /// gradient: null.
  template <class Gradient>
  bool advance(Comm& comm, Gradient const* gradient, Value scale, double beta2,
               std::span<entry_range const> withheld = {}) {
    cancel_on_unwind const alone(comm); // room may be missing on one rank
    sums_.resize(static_cast<std::size_t>(size()));
    next_steps_ = steps_;
    if (gradient != nullptr) {
      for_each<E>("oktopk::second_moments::square", exec_, end_.tiles,
                  tile_squares<E, Gradient, Value>{places_.data(), count(), *gradient, scale, row_sums_.data(),
                                                   column_sums_.data(), processor_has_avx2()});
      for_each<E>("oktopk::second_moments::advance", exec_, size(),
                  statistic_advance<E, Value>{places_.data(), count(), row_sums_.data(), column_sums_.data(),
                                              now_.data(), next_.data(), static_cast<Value>(beta2)});
      enqueue_copy<Kokkos::HostSpace, memory_space>(exec_, sums_.data(), next_.data(), size());
      fence(exec_, "oktopk::second_moments::statistics");
    } else {
      std::fill(sums_.begin(), sums_.end(), std::numeric_limits<Value>::quiet_NaN());
    }
    sum_.run(host_space(), comm, sums_.data(), nullptr, size());
    auto const ranks = static_cast<Value>(comm.size());
    std::for_each(sums_.begin(), sums_.end(), [ranks](Value& each) { each /= ranks; });
    std::vector<Value> corrections;
    for (std::size_t i = 0; i < host_places_.size(); ++i) {
      matrix_place const& of = host_places_[i];
      bool const is_withheld = std::any_of(withheld.begin(), withheld.end(), [&](entry_range const& each) {
        return each.begin <= of.begin && of.begin < each.end;
      });
      if (is_withheld) {
        std::copy(host_now_.begin() + of.statistics, host_now_.begin() + of.column_statistics() + of.width,
                  sums_.begin() + of.statistics);
      }
      std::int64_t& steps = next_steps_[tensors_[i]];
      steps += is_withheld ? 0 : 1;
      corrections.push_back(
          steps == 0 ? Value(1) : static_cast<Value>(1 / std::sqrt(1 - std::pow(beta2, static_cast<double>(steps)))));
    }
    if (!are_finite(sums_)) {
      return false;
    }
    copy_to_device(corrections.data(), count(), corrections_.data());
    set(sums_, next_, next_roots_, next_inverse_roots_);
    return true;
  }

  /// For the accumulators of this step; `kept` is the share of the residual.
  direction_terms<Value> terms(double kept, double epsilon) const {
    return {places_.data(),
            count(),
            inverse_roots_.data(),
            next_roots_.data(),
            corrections_.data(),
            static_cast<Value>(kept),
            static_cast<Value>(epsilon),
            processor_has_avx2()};
  }

  /// The next statistics become those of now; a second call takes that back.
  void keep() {
    std::swap(now_, next_);
    std::swap(roots_, next_roots_);
    std::swap(inverse_roots_, next_inverse_roots_);
    std::swap(host_now_, sums_);
    std::swap(steps_, next_steps_);
  }

  /// For kernels: the factor of each value, of now.
  direction_factor<Value> factor() const { return {places_.data(), count(), roots_.data()}; }

  moments_state<Value> state() const { return {host_now_, rows_, steps_}; }

  /// Without a problem.
  void restore(moments_state<Value> const& saved) {
    host_now_ = saved.squares;
    rows_ = saved.rows;
    steps_ = saved.steps;
    set(host_now_, now_, roots_, inverse_roots_);
  }

private:
  std::int64_t count() const { return static_cast<std::int64_t>(host_places_.size()); }

  template <execution_space Space, class Kernel>
  static void for_each(char const* label, Space const& exec, std::int64_t size, Kernel const& kernel) {
    Kokkos::parallel_for(label, index_range<Space>(exec, 0, size), kernel);
  }

  template <class T>
  void copy_to_device(T const* from, std::int64_t size, T* to) const {
    enqueue_copy<memory_space, Kokkos::HostSpace>(exec_, to, from, size);
    fence(exec_, "oktopk::second_moments::copy");
  }

  // Puts statistics and their roots there. Means of rows are added on the host, in one order on all ranks.
  void set(std::vector<Value> const& statistics, array const& there, array const& roots, array const& inverse_roots) {
    std::vector<Value> means;
    for (matrix_place const& each : host_places_) {
      Value const* const rows = statistics.data() + each.statistics;
      double const sum = each.has_row_statistics() ? std::accumulate(rows, rows + each.rows, 0.0) : 0;
      means.push_back(static_cast<Value>(sum / static_cast<double>(each.rows)));
    }
    copy_to_device(means.data(), count(), means_.data());
    copy_to_device(statistics.data(), size(), there.data());
    for_each<E>(
        "oktopk::second_moments::roots", exec_, size(),
        fourth_roots<Value>{places_.data(), count(), there.data(), means_.data(), roots.data(), inverse_roots.data()});
  }

  E exec_;
  std::vector<matrix_place> host_places_; // of tensors that have values
  std::vector<std::size_t> tensors_;      // their numbers
  matrix_place end_;                      // where another tensor would begin
  buffer<matrix_place, memory_space> places_{"oktopk::second_moments::places"};
  array row_sums_{"oktopk::second_moments::row_sums"};
  array column_sums_{"oktopk::second_moments::column_sums"};
  array means_{"oktopk::second_moments::means"};
  array corrections_{"oktopk::second_moments::corrections"};
  array now_{"oktopk::second_moments::statistics"};
  array next_{"oktopk::second_moments::next_statistics"};
  array roots_{"oktopk::second_moments::roots"};
  array next_roots_{"oktopk::second_moments::next_roots"};
  array inverse_roots_{"oktopk::second_moments::inverse_roots"};
  array next_inverse_roots_{"oktopk::second_moments::next_inverse_roots"};
  std::vector<Value> host_now_;
  std::vector<Value> sums_;        // the next ones, on the host
  std::vector<std::int64_t> rows_; // of all tensors, as their steps
  std::vector<std::int64_t> steps_;
  std::vector<std::int64_t> next_steps_;
  rabenseifner<host_space, Comm, Value> sum_;
};

} // namespace oktopk::detail
