// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace oktopk_bench {

/// What one rank got from one call, in host memory.
struct host_result {
  std::vector<std::int64_t> indices;
  std::vector<float> values;
  std::vector<std::int64_t> contributed;
  std::vector<std::int64_t> returned_indices;
  std::vector<float> returned_values;
};

/// How many entries a selection may have, in multiples of k.
struct band {
  double low = 0;
  double high = 0;
};

/// What a scheme promises about its results, beyond that they are the sums of what the ranks contributed.
struct promises {
  bool everything = false;     ///< all entries of all ranks, as the dense allreduce
  bool local_exact = false;    ///< each rank's selection is the exact top k of its accumulator
  bool all_contribute = false; ///< every selected entry contributes, also one that is not in the result
  bool global_exact = false;   ///< the result has the k largest of the sums of the selections
  bool global_top = false;     ///< the result has the largest of these sums, whatever their number
  std::optional<band> local_band;
  std::optional<band> global_band;
};

/// What one rank reports of one call.
struct call_figures {
  std::int64_t local_selected = 0;
  std::int64_t global_selected = 0;
  double select_seconds = 0;
  bool selects_together = false; ///< whether the selection has messages in it
};

} // namespace oktopk_bench
