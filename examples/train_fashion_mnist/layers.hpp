// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "types.hpp"

#include <cstdint>

// The element-wise kernels of the network; the matrix products are in gemm.hpp.
namespace fashion {

/// Images at positions [first, first + rows) of `order`, as pixels scaled to mean 0 and variance 1, and their labels.
void gather_batch(execution const& exec, images_view const& images, labels_view const& labels, order_view const& order,
                  std::int64_t first, matrix const& pixels, labels_view const& batch_labels);

/// x = x + bias, the same bias in every row.
void add_bias(execution const& exec, matrix const& x, const_vector const& bias);

/// x = max(0, x + bias).
void add_bias_relu(execution const& exec, matrix const& x, const_vector const& bias);

/// Replaces logits by the gradient of the mean cross-entropy of their softmax; gives the sum over rows of the
/// cross-entropy.
double softmax_cross_entropy(execution const& exec, matrix const& logits, labels_view const& labels);

/// Clears the entries of `gradient` where the activation is zero: the derivative of max(0, x).
void mask_by_relu(execution const& exec, const_matrix const& activation, matrix const& gradient);

/// The sum of the rows of x.
void sum_rows(execution const& exec, const_matrix const& x, vector const& sums);

/// How many rows have their largest entry at their label.
std::int64_t count_correct(execution const& exec, const_matrix const& logits, labels_view const& labels);

} // namespace fashion
