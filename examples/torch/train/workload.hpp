// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "options.hpp"

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace torch {
namespace nn {
class Module;
}
} // namespace torch

namespace torch_training {

/// The sums of one rank over its share of the test data.
struct evaluation {
  double loss = 0;
  double right = 0;
  double examples = 0; ///< images, or words to be foretold
};

/// A network with its data, cut into the shares of the ranks.
class workload {
public:
  workload() = default;
  workload(workload const&) = delete;
  workload& operator=(workload const&) = delete;
  virtual ~workload() = default;

  virtual torch::nn::Module& module() = 0;
  /// The mean loss of this rank's examples of an iteration; the same in every run with the same seed.
  virtual torch::Tensor loss(std::int64_t iteration) = 0;
  /// Of the first `parts` of this rank's test data; calls `tell` now and then.
  virtual evaluation evaluate(std::int64_t parts, std::function<void()> const& tell) = 0;
  /// Into how many parts this rank's test data are cut; the same on all ranks.
  virtual std::int64_t test_parts() const = 0;
  /// Iterations in which all ranks together see the training data once.
  virtual std::int64_t iterations_of_an_epoch() const = 0;
};

/// Fills in what the options leave to the workload; says what it needs where that is missing.
options completed(options how);

/// Throws std::runtime_error where data are missing or damaged.
std::unique_ptr<workload> make_workload(options const& how, int rank, int ranks);

} // namespace torch_training
