// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "network.hpp"

#include "gemm.hpp"
#include "layers.hpp"

#include <cmath>
#include <random>
#include <string>
#include <utility>

namespace fashion {

namespace {

std::size_t extent(std::int64_t size) {
  return static_cast<std::size_t>(size);
}

/// Part of a flat array.
template <class Vector>
Vector part(Vector const& flat, std::int64_t begin, std::int64_t size) {
  return Kokkos::subview(flat, std::make_pair(extent(begin), extent(begin + size)));
}

template <class Matrix, class Vector>
Matrix weights_of(Vector const& flat, std::int64_t begin, std::int64_t inputs, std::int64_t outputs) {
  return Matrix(flat.data() + begin, extent(inputs), extent(outputs));
}

} // namespace

network::network(std::int64_t capacity) : labels_("fashion::batch_labels", extent(capacity)) {
  for (std::int64_t layer = 0; layer <= layer_count; ++layer) {
    activations_[layer] =
        owned_matrix("fashion::activation_" + std::to_string(layer), extent(capacity), extent(widths[layer]));
  }
  for (std::int64_t layer = 1; layer < layer_count; ++layer) {
    deltas_[layer] = owned_matrix("fashion::delta_" + std::to_string(layer), extent(capacity), extent(widths[layer]));
  }
}

void network::initialise(execution const& exec, vector const& parameters, std::int64_t seed) {
  auto const host = Kokkos::create_mirror_view(parameters);
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  for (std::int64_t layer = 0; layer < layer_count; ++layer) {
    std::int64_t const begin = offset(layer);
    std::int64_t const biases = begin + widths[layer] * widths[layer + 1];
    double const reach = std::sqrt(6.0 / static_cast<double>(widths[layer]));
    for (std::int64_t i = begin; i < offset(layer + 1); ++i) {
      // By hand: the standard library's distributions differ between implementations.
      double const uniform = static_cast<double>(random() >> 11) * 0x1p-53;
      host(i) = i < biases ? static_cast<float>((2 * uniform - 1) * reach) : 0.0F;
    }
  }
  Kokkos::deep_copy(exec, parameters, host);
  exec.fence();
}

matrix network::activation(std::int64_t layer, std::int64_t rows) const {
  return matrix(activations_[layer].data(), extent(rows), extent(widths[layer]));
}

matrix network::delta(std::int64_t layer, std::int64_t rows) const {
  return layer == layer_count ? activation(layer, rows)
                              : matrix(deltas_[layer].data(), extent(rows), extent(widths[layer]));
}

void network::forward(execution const& exec, const_vector const& parameters, shard const& data, order_view const& order,
                      std::int64_t first, std::int64_t count) {
  gather_batch(exec, data.images, data.labels, order, first, activation(0, count), labels_);
  for (std::int64_t layer = 0; layer < layer_count; ++layer) {
    std::int64_t const inputs = widths[layer];
    std::int64_t const outputs = widths[layer + 1];
    auto const weights = weights_of<const_matrix>(parameters, offset(layer), inputs, outputs);
    auto const biases = part(parameters, offset(layer) + inputs * outputs, outputs);
    matrix const result = activation(layer + 1, count);
    multiply(exec, operand::as_is, activation(layer, count), operand::as_is, weights, result);
    if (layer + 1 < layer_count) {
      add_bias_relu(exec, result, biases);
    } else {
      add_bias(exec, result, biases);
    }
  }
}

double network::backward(execution const& exec, const_vector const& parameters, shard const& data,
                         order_view const& order, std::int64_t first, std::int64_t count, vector const& gradient) {
  forward(exec, parameters, data, order, first, count);
  double const loss = softmax_cross_entropy(exec, delta(layer_count, count), labels_) / static_cast<double>(count);
  for (std::int64_t layer = layer_count - 1; layer >= 0; --layer) {
    std::int64_t const inputs = widths[layer];
    std::int64_t const outputs = widths[layer + 1];
    matrix const out = delta(layer + 1, count);
    matrix const in = activation(layer, count);
    multiply(exec, operand::transposed, in, operand::as_is, out,
             weights_of<matrix>(gradient, offset(layer), inputs, outputs));
    sum_rows(exec, out, part(gradient, offset(layer) + inputs * outputs, outputs));
    if (layer > 0) {
      auto const weights = weights_of<const_matrix>(parameters, offset(layer), inputs, outputs);
      multiply(exec, operand::as_is, out, operand::transposed, weights, delta(layer, count));
      mask_by_relu(exec, in, delta(layer, count));
    }
  }
  return loss;
}

std::int64_t network::correct(execution const& exec, const_vector const& parameters, shard const& data,
                              order_view const& order, std::int64_t first, std::int64_t count) {
  forward(exec, parameters, data, order, first, count);
  return count_correct(exec, activation(layer_count, count), labels_);
}

} // namespace fashion
