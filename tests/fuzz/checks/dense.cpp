// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

#include "fuzz/checks/checks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace oktopk_fuzz {

namespace {

// How far a codec's decoded value may be off, where `largest` is the largest magnitude around it.
long double rounding_of(facts const& about, options const& how, long double largest) {
  bool const single = about.value_bytes == 4;
  long double const rate = std::exp2(1.0L - static_cast<long double>(how.codec_rate));
  switch (about.codec) {
  case rounding::none: return 0;
  case rounding::bfloat16: return std::max(largest, 0x1p-126L) * (0x1p-8L + 0x1p-23L);
  case rounding::block_float: {
    long double const least = single ? static_cast<long double>(std::numeric_limits<float>::min())
                                     : static_cast<long double>(std::numeric_limits<double>::min());
    return 2 * std::max(largest, least) * rate * (1 + rate);
  }
  case rounding::zfp: return std::max(largest * 1024 * rate, single ? 0x1p-98L : 0x1p-962L);
  }
  return 0;
}

} // namespace

template <class Value>
verdict check_dense(seen_call<Value> const& seen) {
  auto const n = static_cast<std::size_t>(seen.length());
  bool all_negative_zero = true;
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& mine = seen.ranks[rank];
    bool all = mine.update.size() == n && mine.contributed.size() == n;
    for (std::size_t i = 0; i < n && all; ++i) {
      all = mine.contributed[i] == static_cast<std::int64_t>(i);
    }
    if (!all || mine.statistics.local_selected != seen.length()) {
      return finding{"dense_form",
                     "rank " + std::to_string(rank) + ": not every index is in the update or contributed"};
    }
    if (seen.about.lossless() && mine.returned.size() > 0) {
      return finding{"returned",
                     "rank " + std::to_string(rank) + ": something is returned, and nothing was rounded off"};
    }
  }
  // Of zeros, too, the sum is that of IEEE arithmetic: -0 of nothing but -0.
  for (std::size_t i = 0; i < n && seen.about.lossless(); ++i) {
    all_negative_zero = true;
    for (auto const& each : seen.accumulators) {
      all_negative_zero = all_negative_zero && is_negative_zero(each[i]);
    }
    if (!all_negative_zero && is_negative_zero(seen.ranks[0].update.values[i])) {
      return finding{"zero_sign", "the sum at index " + std::to_string(i) + " is -0, though not all that is summed is"};
    }
  }
  // What is rounded off: once by each rank of what it has summed so far; or once a step.
  long double most = 0;
  for (auto const& each : seen.accumulators) {
    long double largest = 0;
    for (Value const x : each) {
      largest = std::max(largest, std::fabs(static_cast<long double>(x)));
    }
    most += largest;
  }
  for (std::size_t step = 0; step < seen.ranks.size(); ++step) {
    most += rounding_of(seen.about, seen.what.how, most);
  }
  long double const times =
      seen.about.sums_round_once ? 1 : 2 + std::ceil(std::log2(static_cast<long double>(seen.ranks.size())));
  long double const limit = times * rounding_of(seen.about, seen.what.how, most);
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    auto const& returned = seen.ranks[rank].returned;
    for (std::size_t i = 0; i < returned.size(); ++i) {
      if (std::fabs(static_cast<long double>(returned.values[i])) > limit) {
        return finding{"rounded_off", "rank " + std::to_string(rank) + " returns " +
                                          in_words(static_cast<double>(returned.values[i])) + " at index " +
                                          std::to_string(returned.indices[i]) + ", at most " +
                                          in_words(static_cast<double>(limit)) + " may be rounded off"};
      }
    }
  }
  return {};
}

template verdict check_dense(seen_call<float> const&);
template verdict check_dense(seen_call<double> const&);

} // namespace oktopk_fuzz
