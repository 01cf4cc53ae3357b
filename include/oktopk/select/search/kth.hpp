// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <cstdint>

namespace oktopk::detail {

/// The k-th largest magnitude, and how many of the candidates with it belong to the k largest.
template <gradient_value Value>
struct kth {
  bits_of<Value> threshold = 0; ///< pattern of the k-th largest magnitude
  std::int64_t ties = 0;        ///< candidates with exactly that magnitude
  std::int64_t ties_wanted = 0; ///< how many of them complete the k; those of the lowest indices
};

/// The knowledge of the k-th magnitude after some digits: it is one of 2^shift patterns.
template <gradient_value Value>
struct kth_bracket {
  bool found = false;            ///< whether it is in the range at all
  bits_of<Value> floor = 0;      ///< the lowest of the patterns
  int shift = 0;                 ///< the logarithm of how many there are
  std::int64_t above = 0;        ///< candidates of this rank with a larger pattern
  std::int64_t inside = 0;       ///< candidates of this rank with one of the patterns
  std::int64_t inside_total = 0; ///< the same of all ranks in the group
  std::int64_t wanted = 0;       ///< how many of `inside_total` belong to the k largest

  KOKKOS_INLINE_FUNCTION bool holds(bits_of<Value> magnitude) const {
    return magnitude >= floor && ((magnitude - floor) >> shift) == 0;
  }
};

} // namespace oktopk::detail
