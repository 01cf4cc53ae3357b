// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/select/concept.hpp>
#include <oktopk/select/kernel/compact.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace oktopk {

namespace detail {

/// The quantile function (percent-point function) of the standard normal distribution, for p in (0, 1).
///
/// Newton's method on the complementary error function from a logarithmic first guess, about as exact as erfc.
inline double normal_quantile(double p) {
  if (p > 0.5) {
    return -normal_quantile(1 - p);
  }
  // Below the median: solve erfc(-x / sqrt 2) / 2 = p for x <= 0, in log space, where it is nearly a parabola.
  double const log_p = std::log(p);
  double x = -std::sqrt(std::max(0.0, -2 * log_p - std::log(2 * 3.14159265358979323846 * std::max(1.0, -2 * log_p))));
  for (int step = 0; step < 60; ++step) {
    double const cumulative = 0.5 * std::erfc(-x / std::sqrt(2.0));
    double const density = std::exp(-x * x / 2) / std::sqrt(2 * 3.14159265358979323846);
    double const move = (std::log(cumulative) - log_p) * cumulative / density;
    x -= move;
    if (std::abs(move) <= 1e-15 * std::max(1.0, std::abs(x))) {
      break;
    }
  }
  return x;
}

/// Sums a stretch of scaled values in eight parts, which a CPU adds at the same time.
template <gradient_value Value>
KOKKOS_INLINE_FUNCTION double sum_of(Value const* values, std::int64_t count, double scale, double center,
                                     bool squared) {
  constexpr int lanes = 8;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      double const away = static_cast<double>(values[i + lane]) * scale - center;
      sums[lane] += squared ? away * away : away;
    }
  }
  double sum = 0;
  for (int lane = 0; lane < lanes; ++lane) {
    sum += sums[lane];
  }
  for (; i < count; ++i) {
    double const away = static_cast<double>(values[i]) * scale - center;
    sum += squared ? away * away : away;
  }
  return sum;
}

template <execution_space E, gradient_value Value>
struct moment_sum {
  static constexpr std::int64_t width = is_device<E> ? 1 : 1024;

  Value const* values;
  std::int64_t size;
  double scale;
  double center;
  bool squared;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, double& part) const {
    std::int64_t const begin = i * width;
    part += sum_of(values + begin, begin + width < size ? width : size - begin, scale, center, squared);
  }

  /// The mean of the scaled values, or of the squares of their distances from `center`.
  double mean(E const& exec) const {
    double sum = 0;
    Kokkos::parallel_reduce("oktopk::select::moment", index_range<E>(exec, 0, (size + width - 1) / width), *this, sum);
    return sum / static_cast<double>(size);
  }
};

template <gradient_value Value>
struct magnitude_maximum {
  Value const* values;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, double& most) const {
    double const magnitude = static_cast<double>(magnitude_from_bits<Value>(magnitude_bits(values[i])));
    most = magnitude > most ? magnitude : most;
  }
};

} // namespace detail

/// Gaussian-k (Shi et al. 2019, "Understanding top-k sparsification"): the threshold that would select k if the values
/// were normally distributed with their mean and standard deviation.
///
/// Reads the candidates three times (see `threshold` for doubles that need more), and promises no count: where the
/// distribution has other tails than the normal one it selects far fewer or more than k. For local selections.
struct gaussian : selector_base {
  struct options {};
  template <gradient_value Value>
  using state = detail::no_state;

  gaussian() = default;
  explicit gaussian(options) {}

  static std::string name() { return "gaussian"; }
  std::string describe() const { return name(); }
  std::string problem() const { return {}; }
  bool bounded() const { return false; }
  selection_promises promises() const { return {.rule = describe(), .largest = true}; }
  std::int64_t capacity(std::int64_t, std::int64_t length) const { return length; }

  template <execution_space E, gradient_index Index, gradient_value Value, selection_group Group,
            selection_source Source>
  selection<Index, Value, typename E::memory_space> select(selection_context<E, Index, Value, Group> const& context,
                                                           Source const& source, state<Value>&) const {
    auto const& [exec, k, iteration, group, workspace] = context;
    std::int64_t count = 0;
    source.materialize(exec);
    auto const from = source.materialized();
    if (k > 0 && from.size() > 0) {
      // A value that is not finite passes, even if the fit is not finite because of it.
      auto const least = detail::magnitude_bits(static_cast<Value>(threshold<E, Index, Value>(exec, from, k)));
      auto const threshold_bits = std::min(least, detail::infinity_bits<Value>);
      workspace.reserve(exec, std::min(2 * k, from.size()));
      count = detail::compact(exec, from, threshold_bits, workspace, true);
      if (count > workspace.indices.capacity()) {
        workspace.reserve(exec, count);
        detail::compact(exec, from, threshold_bits, workspace);
      }
    }
    return {workspace.entries(count), group.gather_counts(count), true};
  }

  /// |mean| + standard deviation x quantile(1 - k / 2n): both tails together hold k. Waits for `exec`.
  ///
  /// If squares of the values overflow or vanish (doubles beyond 1e154 or below 1e-154), it reads them once more for
  /// the largest magnitude, and three times scaled by a power of two.
  template <execution_space E, gradient_index Index, gradient_value Value>
  static double threshold(E const& exec, detail::candidates<Index, Value, typename E::memory_space> from,
                          std::int64_t k) {
    Value const* const values = from.values.data();
    double mean = 0; // of the values times a scale, as the variance is, which is not finite where squares overflow
    double variance = 0;
    auto const fit = [&](double scale) {
      mean = detail::moment_sum<E, Value>{values, from.size(), scale, 0, false}.mean(exec);
      variance = detail::moment_sum<E, Value>{values, from.size(), scale, mean, true}.mean(exec);
    };
    fit(1);
    int exponent = 0;
    if (!detail::is_finite(variance) || variance < std::numeric_limits<double>::min()) {
      double largest = 0;
      Kokkos::parallel_reduce("oktopk::select::largest_magnitude", detail::index_range<E>(exec, 0, from.size()),
                              detail::magnitude_maximum<Value>{values}, Kokkos::Max<double>(largest));
      if (largest > 0 && detail::is_finite(largest)) {
        exponent = std::clamp(-std::ilogb(largest), -1000, 1000); // of a scale that is a normal number
        fit(std::ldexp(1.0, exponent));
      }
    }
    double const tail = static_cast<double>(k) / (2 * static_cast<double>(from.size()));
    return std::ldexp(std::abs(mean) - std::sqrt(variance) * detail::normal_quantile(tail), -exponent);
  }
};

} // namespace oktopk
