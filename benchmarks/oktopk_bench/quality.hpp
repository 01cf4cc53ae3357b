// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <span>

// How near an update is to what no selection would have left out. As the reference, nothing here uses the library.
namespace oktopk_bench {

/// An update against the dense sum of the accumulators.
struct update_quality {
  /// The paper's xi (Assumption 1) of this step: |Topk(S) - Topk(U)| / |S|, S being the dense sum and U the update. The
  /// paper divides by the norm of the gradients' sum, which is that of S where there is no residual.
  double xi = 0;
  /// 1 - |S - U|^2 / |S|^2: the share of the dense sum's squared norm that arrived; below nought where U is worse than
  /// no update.
  double captured = 0;
  /// The same of Topk(S): the most that any k entries can have.
  double captured_by_top_k = 0;
};

/// Compares the update (ascending indices and their values) with the dense sum; ties of Topk go to the lower index.
///
/// A sum of zeros has nothing to capture: then xi is nought and the shares are 1 for an update of zeros.
update_quality quality_of(std::span<double const> sum, std::span<std::int64_t const> indices,
                          std::span<float const> values, std::int64_t k);

} // namespace oktopk_bench
