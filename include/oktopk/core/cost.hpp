// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace oktopk::detail {

/// The expected work of one rank in a steady call, for even selections; `bound_words` is the most.
///
/// Each algorithm returns it from `expected_cost(options, ranks)` next to its bound, and each step for its own part. A
/// model of the machine turns it into a time (`machine_model`).
struct call_cost {
  double messages = 0; ///< one after another: each costs the latency of the network
  double beside = 0;   ///< messages that are sent while others are on their way: each costs the rank's own time
  double bytes = 0;    ///< that the rank sends, headers included, while it receives as many
  double selected = 0; ///< values that selections read
  double encoded = 0;  ///< entries that the format encodes
  double decoded = 0;  ///< entries that the format decodes, which are then summed or merged
  double added = 0;    ///< dense values that are added or copied
  double passes = 0;   ///< selections, encodings and decodings: each has the cost of an empty vector

  friend call_cost operator+(call_cost const& a, call_cost const& b) {
    return {a.messages + b.messages, a.beside + b.beside,   a.bytes + b.bytes, a.selected + b.selected,
            a.encoded + b.encoded,   a.decoded + b.decoded, a.added + b.added, a.passes + b.passes};
  }

  bool operator==(call_cost const&) const = default;
};

/// The steps of a collective that doubles its reach in each step.
inline double doubling_steps(int ranks) {
  return static_cast<double>(ceil_log2(ranks));
}

/// The share of an evenly split vector that belongs to other ranks: (P-1)/P.
inline double share_of_others(int ranks) {
  return (ranks - 1.0) / ranks;
}

/// The expected number of distinct indices in P independent selections of `each` of `length` places: the length of
/// their sum.
inline double expected_union(int ranks, double each, double length) {
  double missed = 1;
  for (int rank = 0; rank < ranks && length > 0; ++rank) {
    missed *= 1 - std::min(each / length, 1.0);
  }
  return length * (1 - missed);
}

/// The same for selections that overlap as the gradients of training do, whose largest entries lie in the same places:
/// as if all ranks selected independently from 1.5 times the square root of the density of all places. Measured: at 1 %
/// the sum of 16 ranks has 10 k entries, and at 0.1 % 14 k.
inline double expected_similar_union(int ranks, double each, double length) {
  double const density = length > 0 ? std::min(each / length, 1.0) : 0;
  double const places = length * std::min(1.5 * std::sqrt(density), 1.0);
  return expected_union(ranks, each, std::max(places, each));
}

} // namespace oktopk::detail
