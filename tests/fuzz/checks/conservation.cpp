// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace oktopk_fuzz {

namespace {

// Whether all sums of these are exact, in whatever order.
template <class Value>
bool small_whole_numbers(std::vector<std::vector<Value>> const& vectors) {
  long double const most = static_cast<long double>(std::int64_t(1) << 23) / static_cast<long double>(vectors.size());
  for (auto const& each : vectors) {
    for (Value const x : each) {
      if (std::fabs(static_cast<long double>(x)) > most || std::nearbyint(x) != x) {
        return false;
      }
    }
  }
  return true;
}

} // namespace

template <class Value>
verdict check_conservation(seen_call<Value> const& seen) {
  if (seen.about.kind == family::gtopk && !seen.what.how.return_dropped) {
    return {}; // as published, it loses what it drops
  }
  auto const n = static_cast<std::size_t>(seen.length());
  std::vector<long double> put_in(n, 0);
  std::vector<long double> came_out(n, 0);
  std::vector<long double> size(n, 0); // of all numbers that were summed
  long double largest = 0;
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    for (std::size_t i = 0; i < n; ++i) {
      auto const x = static_cast<long double>(seen.accumulators[rank][i]);
      auto const left = static_cast<long double>(seen.residuals[rank][i]);
      if (!std::isfinite(left)) {
        return finding{"residual_not_finite", "rank " + std::to_string(rank) + ": the residual at index " +
                                                  std::to_string(i) + " is not finite after a call without an error"};
      }
      put_in[i] += x;
      came_out[i] += left;
      size[i] += std::fabs(x) + (seen.about.lossless() ? 0 : std::fabs(left));
      largest = std::max(largest, std::fabs(x));
    }
  }
  auto const& update = seen.ranks[0].update;
  for (std::size_t i = 0; i < update.size(); ++i) {
    came_out[static_cast<std::size_t>(update.indices[i])] += static_cast<long double>(update.values[i]);
  }
  // Every partial sum rounds once; those of a tree once more where they are dropped, those of a codec where what is
  // lost is told. ZFP tells that up to the rounding of the largest of a block.
  auto const ranks = static_cast<long double>(seen.ranks.size());
  auto const epsilon = static_cast<long double>(std::numeric_limits<Value>::epsilon());
  bool const exact = seen.about.lossless() && small_whole_numbers(seen.accumulators);
  long double const roundings = exact                              ? 0
                                : !seen.about.lossless()           ? 4 * ranks
                                : seen.about.kind == family::gtopk ? 2 * ranks
                                                                   : ranks - 1;
  long double const of_block = seen.about.codec == rounding::zfp ? 8 * ranks * ranks * epsilon * largest : 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!(std::fabs(put_in[i] - came_out[i]) <= roundings * epsilon * size[i] + of_block)) {
      return finding{"conservation", "index " + std::to_string(i) + ": " + in_words(static_cast<double>(put_in[i])) +
                                         " was put in, " + in_words(static_cast<double>(came_out[i])) + " came out"};
    }
  }
  return {};
}

template verdict check_conservation(seen_call<float> const&);
template verdict check_conservation(seen_call<double> const&);

} // namespace oktopk_fuzz
