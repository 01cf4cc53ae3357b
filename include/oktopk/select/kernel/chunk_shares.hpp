// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <algorithm>
#include <cstdint>

namespace oktopk::detail {

/// How many of the largest magnitudes each chunk of a vector gives, and where they are written: all that a kernel needs
/// to know of a selection by chunks.
struct chunk_shares {
  std::int64_t length = 0; ///< of the vector
  std::int64_t chunk = 1;  ///< values in a whole chunk
  std::int64_t whole = 0;  ///< number of whole chunks
  std::int64_t base = 0;   ///< what a whole chunk gives at least
  std::int64_t extra = 0;  ///< how many whole chunks give one more; they lie evenly among the others
  std::int64_t last = 0;   ///< what the shorter chunk at the end gives

  /// `chunk` times 2^31 must not be less than the length.
  KOKKOS_INLINE_FUNCTION std::int64_t chunks() const { return whole + (whole * chunk < length ? 1 : 0); }
  KOKKOS_INLINE_FUNCTION std::int64_t begin(std::int64_t which) const { return which * chunk; }
  KOKKOS_INLINE_FUNCTION std::int64_t end(std::int64_t which) const {
    return which < whole ? (which + 1) * chunk : length;
  }

  /// Entries of all chunks before, for a chunk up to `whole`.
  KOKKOS_INLINE_FUNCTION std::int64_t offset(std::int64_t which) const {
    return which * base + (extra > 0 ? which * extra / whole : 0);
  }
  KOKKOS_INLINE_FUNCTION std::int64_t wanted(std::int64_t which) const {
    return which < whole ? offset(which + 1) - offset(which) : last;
  }

  std::int64_t total() const { return offset(whole) + last; }

  /// Where a value may be that no chunk looks for: the whole vector, its shorter chunk, or nothing.
  std::int64_t first_without_share() const { return whole > 0 && base == 0 ? 0 : last == 0 ? whole * chunk : length; }
};

/// The same number from every chunk; from one that is shorter than that, all it has.
inline chunk_shares same_shares(std::int64_t length, std::int64_t chunk, std::int64_t per_chunk) {
  std::int64_t const whole = length / chunk;
  return {length, chunk, whole, per_chunk, 0, std::min(per_chunk, length - whole * chunk)};
}

/// k entries in all, k at most the length: from each chunk in proportion to its values. Whole chunks differ by one at
/// most.
inline chunk_shares proportional_shares(std::int64_t length, std::int64_t chunk, std::int64_t k) {
  std::int64_t const whole = length / chunk;
  std::int64_t const rest = length - whole * chunk;
  std::int64_t const last = rest > 0 ? k * rest / length : 0;
  if (whole == 0) {
    return {length, chunk, 0, 0, 0, last};
  }
  return {length, chunk, whole, (k - last) / whole, (k - last) % whole, last};
}

} // namespace oktopk::detail
