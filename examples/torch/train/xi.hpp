// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "scheme.hpp"

#include <oktopk/bucketed.hpp>

#include <vector>

namespace torch_training {

/// Measures the paper's xi of one step (Assumption 1): how far the update is from the k largest entries of the sum of
/// all accumulators, in units of the norm of what the step has added to them. Of all buckets together.
class xi_of_step {
public:
  /// Before a step: keeps what goes into the next calls.
  void attach(oktopk::bucketed<scheme>& buckets);

  /// Keeps nothing any more.
  static void detach(oktopk::bucketed<scheme>& buckets);

  /// After the step, in place of `detach`. Collective; costs dense allreduces, over `world` so that they are not
  /// counted.
  double measure(oktopk::bucketed<scheme>& buckets, oktopk::mpi_communicator world);

private:
  struct seen {
    std::vector<float> accumulator;
    std::vector<float> added;
  };

  std::vector<seen> buckets_;
};

} // namespace torch_training
