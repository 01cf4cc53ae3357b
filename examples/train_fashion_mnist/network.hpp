// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dataset.hpp"
#include "types.hpp"

#include <cstdint>

namespace fashion {

/// The network 784-1024-1024-10 with ReLU between its layers and softmax cross-entropy at its end.
///
/// Its parameters are one flat array, so that one allreduce call covers all of them: for each layer the weights (one
/// row per input) and then the biases. Gradients have the same layout. The object holds activations only.
class network {
public:
  static constexpr std::int64_t layer_count = 3;
  static constexpr std::int64_t widths[layer_count + 1] = {image_pixels, 1024, 1024, label_count};

  /// The number of parameters.
  static constexpr std::int64_t length() { return offset(layer_count); }

  /// Makes room for batches of up to `capacity` images.
  explicit network(std::int64_t capacity);

  /// Weights drawn from a seeded generator, uniform with the variance 2 / inputs; biases zero. The same on every rank.
  static void initialise(execution const& exec, vector const& parameters, std::int64_t seed);

  /// Sets `gradient` to that of the mean loss over the images at [first, first + count) of `order`; gives that loss.
  double backward(execution const& exec, const_vector const& parameters, shard const& data, order_view const& order,
                  std::int64_t first, std::int64_t count, vector const& gradient);

  /// How many of the images at [first, first + count) of `order` the network labels correctly.
  std::int64_t correct(execution const& exec, const_vector const& parameters, shard const& data,
                       order_view const& order, std::int64_t first, std::int64_t count);

  std::int64_t capacity() const { return static_cast<std::int64_t>(labels_.extent(0)); }

private:
  /// Where a layer's weights begin; its biases follow them.
  static constexpr std::int64_t offset(std::int64_t layer) {
    std::int64_t sum = 0;
    for (std::int64_t l = 0; l < layer; ++l) {
      sum += (widths[l] + 1) * widths[l + 1];
    }
    return sum;
  }

  /// The first `rows` rows of a layer's activations (0: the input) or of their gradients.
  matrix activation(std::int64_t layer, std::int64_t rows) const;
  matrix delta(std::int64_t layer, std::int64_t rows) const;

  void forward(execution const& exec, const_vector const& parameters, shard const& data, order_view const& order,
               std::int64_t first, std::int64_t count);

  owned_matrix activations_[layer_count + 1];
  owned_matrix deltas_[layer_count]; // of layers 1 and 2; the last layer's replace its activations
  labels_view labels_;
};

} // namespace fashion
