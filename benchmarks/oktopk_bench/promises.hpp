// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "result.hpp"

#include <oktopk/catalogue/any_allreduce.hpp>

#include <cstdint>
#include <vector>

namespace oktopk_bench {

using oktopk::allreduce_promises;
using order = allreduce_promises::order;

/// Whether a format rounds the entries that are sent, of a scheme that stays the same.
inline bool rounds_entries(allreduce_promises const& promised) {
  return promised.local && promised.repeats && !promised.rounding.empty();
}

/// Whether sums that are not chosen are coded together with the chosen ones, which are then cut by their coded values.
inline bool codes_other_sums(allreduce_promises const& promised) {
  return promised.global && promised.global->as_sent && rounds_entries(promised);
}

/// Whether the region of each rank is one range of indices.
inline bool has_whole_regions(allreduce_promises const& promised) {
  return !promised.partition.starts_with("uniform") || promised.partition == "uniform (blocks 1)";
}

/// Of the regions of the last call: Ok-Topk's are in its state, the others' are even.
std::vector<std::int64_t> boundaries_of(oktopk::any_allreduce<space> const& algorithm, int ranks);

} // namespace oktopk_bench
