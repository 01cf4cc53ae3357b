// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <ATen/core/Tensor.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace oktopk_torch {

/// A bucket of DistributedDataParallel whose gradients are there.
struct arrival {
  at::Tensor buffer;                    ///< gradients in, averages over the ranks out
  std::vector<std::int64_t> parameters; ///< whose gradients lie there one after the other
  std::vector<int> used;  ///< of each of these whether this rank has a gradient, 0 or 1; empty where all ranks have all
  std::int64_t index = 0; ///< of the bucket in this backward pass
  bool is_last = false;
  std::function<void(std::exception_ptr)> done; ///< called once, with null where all went well
};

/// Momentum before the residual takes a gradient, as in oktopk::error_feedback_options; the same on all ranks.
struct momentum_options {
  double momentum = 0;
  bool nesterov = false;
};

struct saved_bucket {
  std::vector<std::int64_t> parameters;
  std::string policies;   ///< of any_state
  std::string checkpoint; ///< of any_state
};

/// All that is carried from one iteration to the next.
struct saved_state {
  std::vector<at::Tensor> residuals;  ///< of each parameter; not defined where it has none
  std::vector<at::Tensor> velocities; ///< the same; none are defined without momentum
  std::vector<saved_bucket> buckets;
};

/// Error feedback over an allreduce of the catalogue, for the buckets of DistributedDataParallel.
///
/// Every bucket has an allreduce and a residual of its own. DistributedDataParallel builds other buckets after its
/// first iteration: then residuals and velocities go with their parameters, and the allreduces begin anew. After `load`
/// the buckets are those of the saved state for one iteration whatever comes, so that a program that goes on does what
/// one does that was never interrupted; gradients are copied where their buckets differ. All calls are made on one
/// thread, in the same order on all ranks.
///
/// DistributedDataParallel drops the average of a parameter that no rank has used in a backward pass. So such a
/// parameter takes no part in the call of its bucket: its residual and velocity stay until some rank uses it. Ranks
/// agree on that in one reduction of an integer a parameter before each call, where `used` is given.
class buckets {
public:
  /// Collective. `text` names an algorithm of the catalogue, with `density` among its options (0.01 unless given);
  /// `lengths` are those of the parameters, the same on all ranks. Throws an `oktopk::error` on every rank.
  buckets(c10::intrusive_ptr<c10d::ProcessGroup> group, std::string const& text, momentum_options const& momentum,
          std::vector<std::int64_t> lengths);
  ~buckets();
  buckets(buckets const&) = delete;
  buckets& operator=(buckets const&) = delete;

  /// Collective. What goes wrong, `done` is told, and so is that of all later buckets of the same backward pass.
  void arrive(arrival what);

  saved_state save() const;

  /// Collective; an `oktopk::error` on every rank where `fault` is not empty on some rank or the state does not fit.
  void load(saved_state const& saved, std::string const& fault);

  /// Words of 4 bytes that this rank has sent, since it was made.
  double words_sent() const;

private:
  struct inside;
  std::unique_ptr<inside> inside_;
};

} // namespace oktopk_torch
