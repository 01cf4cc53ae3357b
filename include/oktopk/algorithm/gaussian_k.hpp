// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/algorithm/topk_a.hpp>
#include <oktopk/select/gaussian.hpp>

#include <utility>

namespace oktopk {

/// Gaussian-k (Shi et al. 2019, "Understanding top-k sparsification in distributed deep learning"): a threshold from
/// mean and standard deviation, then as `topk_a`.
///
/// The update is the exact sum of what the ranks selected, which may be far from k each: the cost is that of `topk_a`
/// with the count that the Gaussian threshold really gives. What is not selected stays in the residual.
template <execution_space E, communicator Comm, sparse_format Format = coo<>>
class gaussian_k : public topk_a<E, Comm, Format, gaussian> {
public:
  using options = typename topk_a<E, Comm, Format, gaussian>::options;

  /// Collective.
  gaussian_k(E exec, Comm comm, options const& how)
      : topk_a<E, Comm, Format, gaussian>(std::move(exec), std::move(comm), how, "gaussian_k") {}

  /// As `topk_a`'s, with the largest number that a rank selected in the last call in place of k: nothing bounds it
  /// beforehand.
  double bound_words() const { return this->bound_for(this->largest_selection()); }
};

} // namespace oktopk
