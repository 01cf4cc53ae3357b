// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "layers.hpp"

#include <cmath>

namespace fashion {

namespace {

// One team per row: threads of a device read neighbouring entries, a core gets a loop it can vectorise.
using rows_policy = Kokkos::TeamPolicy<execution, Kokkos::IndexType<std::int64_t>>;
using range_policy = Kokkos::RangePolicy<execution, Kokkos::IndexType<std::int64_t>>;

// Mean and spread of the pixels of Fashion-MNIST's training images, on the scale from 0 to 1.
constexpr float pixel_mean = 0.2860F;
constexpr float pixel_spread = 0.3530F;

} // namespace

void gather_batch(execution const& exec, images_view const& images, labels_view const& labels, order_view const& order,
                  std::int64_t first, matrix const& pixels, labels_view const& batch_labels) {
  auto const columns = static_cast<std::int64_t>(pixels.extent(1));
  float const scale = 1.0F / (255.0F * pixel_spread);
  float const shift = pixel_mean / pixel_spread;
  Kokkos::parallel_for(
      "fashion::gather_batch", rows_policy(exec, static_cast<int>(pixels.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(rows_policy::member_type const& team) {
        std::int64_t const row = team.league_rank();
        std::int64_t const source = order(first + row);
        Kokkos::single(Kokkos::PerTeam(team), [&]() { batch_labels(row) = labels(source); });
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, columns), [&](std::int64_t column) {
          pixels(row, column) = static_cast<float>(images(source, column)) * scale - shift;
        });
      });
}

void add_bias(execution const& exec, matrix const& x, const_vector const& bias) {
  auto const columns = static_cast<std::int64_t>(x.extent(1));
  Kokkos::parallel_for(
      "fashion::add_bias", rows_policy(exec, static_cast<int>(x.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(rows_policy::member_type const& team) {
        std::int64_t const row = team.league_rank();
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, columns),
                             [&](std::int64_t column) { x(row, column) += bias(column); });
      });
}

void add_bias_relu(execution const& exec, matrix const& x, const_vector const& bias) {
  auto const columns = static_cast<std::int64_t>(x.extent(1));
  Kokkos::parallel_for(
      "fashion::add_bias_relu", rows_policy(exec, static_cast<int>(x.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(rows_policy::member_type const& team) {
        std::int64_t const row = team.league_rank();
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, columns), [&](std::int64_t column) {
          float const sum = x(row, column) + bias(column);
          x(row, column) = sum > 0.0F ? sum : 0.0F;
        });
      });
}

double softmax_cross_entropy(execution const& exec, matrix const& logits, labels_view const& labels) {
  auto const rows = static_cast<std::int64_t>(logits.extent(0));
  auto const columns = static_cast<std::int64_t>(logits.extent(1));
  float const share = 1.0F / static_cast<float>(rows);
  double loss = 0;
  Kokkos::parallel_reduce(
      "fashion::softmax_cross_entropy", range_policy(exec, 0, rows),
      KOKKOS_LAMBDA(std::int64_t row, double& sum) {
        // Relative to the largest, so that no exponential overflows.
        float largest = logits(row, 0);
        for (std::int64_t c = 1; c < columns; ++c) {
          largest = logits(row, c) > largest ? logits(row, c) : largest;
        }
        std::int64_t const truth = labels(row);
        float const true_logit = logits(row, truth) - largest;
        float total = 0;
        for (std::int64_t c = 0; c < columns; ++c) {
          float const weight = expf(logits(row, c) - largest);
          logits(row, c) = weight;
          total += weight;
        }
        for (std::int64_t c = 0; c < columns; ++c) {
          float const wanted = c == truth ? 1.0F : 0.0F;
          logits(row, c) = (logits(row, c) / total - wanted) * share;
        }
        sum += static_cast<double>(logf(total) - true_logit);
      },
      loss);
  return loss;
}

void mask_by_relu(execution const& exec, const_matrix const& activation, matrix const& gradient) {
  auto const columns = static_cast<std::int64_t>(gradient.extent(1));
  Kokkos::parallel_for(
      "fashion::mask_by_relu", rows_policy(exec, static_cast<int>(gradient.extent(0)), Kokkos::AUTO),
      KOKKOS_LAMBDA(rows_policy::member_type const& team) {
        std::int64_t const row = team.league_rank();
        Kokkos::parallel_for(Kokkos::TeamVectorRange(team, columns), [&](std::int64_t column) {
          float const value = gradient(row, column);
          gradient(row, column) = activation(row, column) > 0.0F ? value : 0.0F;
        });
      });
}

void sum_rows(execution const& exec, const_matrix const& x, vector const& sums) {
  auto const rows = static_cast<std::int64_t>(x.extent(0));
  auto const columns = static_cast<std::int64_t>(x.extent(1));
  Kokkos::parallel_for(
      "fashion::sum_rows", range_policy(exec, 0, columns), KOKKOS_LAMBDA(std::int64_t column) {
        float sum = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          sum += x(row, column);
        }
        sums(column) = sum;
      });
}

std::int64_t count_correct(execution const& exec, const_matrix const& logits, labels_view const& labels) {
  auto const rows = static_cast<std::int64_t>(logits.extent(0));
  auto const columns = static_cast<std::int64_t>(logits.extent(1));
  std::int64_t correct = 0;
  Kokkos::parallel_reduce(
      "fashion::count_correct", range_policy(exec, 0, rows),
      KOKKOS_LAMBDA(std::int64_t row, std::int64_t & sum) {
        std::int64_t best = 0;
        for (std::int64_t c = 1; c < columns; ++c) {
          best = logits(row, c) > logits(row, best) ? c : best;
        }
        sum += best == labels(row) ? 1 : 0;
      },
      correct);
  return correct;
}

} // namespace fashion
