// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

namespace oktopk::detail {

/// Any number of ranks as the largest power of two of them: the first ranks fold in pairs, each of which has one place
/// in the core (Thakur et al. 2005, section 4.5).
struct folded_ranks {
  int core = 1;          ///< places: 2^m <= P
  int folded = 0;        ///< pairs: P - 2^m
  int place = 0;         ///< of this rank, or of the pair's even rank
  bool in_pair = false;  ///< whether this rank shares a place
  bool is_guest = false; ///< whether it is the odd one of a pair, which is out of the core

  folded_ranks(int rank, int ranks) {
    while (core * 2 <= ranks) {
      core *= 2;
    }
    folded = ranks - core;
    in_pair = rank < 2 * folded;
    is_guest = in_pair && rank % 2 == 1;
    place = in_pair ? rank / 2 : rank - folded;
  }

  int rank_at(int p) const { return p < folded ? 2 * p : p + folded; }
};

} // namespace oktopk::detail
