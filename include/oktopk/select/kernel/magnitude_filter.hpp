// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/bits.hpp>

#include <cstdint>
#include <limits>

namespace oktopk {

/// The candidates that a compaction writes: those of magnitudes above the threshold, and ties with it up to a position.
template <gradient_value Value>
struct magnitude_filter {
  detail::bits_of<Value> threshold = 0;                             ///< pattern of the magnitude
  std::int64_t last_tie = std::numeric_limits<std::int64_t>::max(); ///< ties at later positions are left out

  KOKKOS_INLINE_FUNCTION bool operator()(detail::bits_of<Value> magnitude, std::int64_t position) const {
    return magnitude > threshold || (magnitude == threshold && position <= last_tie);
  }
};

} // namespace oktopk
