// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/concepts.hpp>

#include <cstdint>
#include <limits>

namespace oktopk::detail {

/// Neighbours that one warp looks at, as positions in an array.
struct candidate_run {
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

/// An array cut into pieces of one size. Few rows for a warp, so that warps are many where candidates are few.
struct even_pieces {
  std::int64_t size = 0;
  std::int64_t width = 1; ///< of a piece

  KOKKOS_INLINE_FUNCTION std::int64_t count() const { return (size + width - 1) / width; }
  KOKKOS_INLINE_FUNCTION candidate_run operator()(std::int64_t which) const {
    std::int64_t const begin = which * width;
    return {begin, begin + width < size ? width : size - begin};
  }
};

/// Pieces that lie anywhere, listed in the order of what is in them.
struct listed_pieces {
  candidate_run const* list = nullptr;
  std::int64_t listed = 0;

  KOKKOS_INLINE_FUNCTION std::int64_t count() const { return listed; }
  KOKKOS_INLINE_FUNCTION candidate_run operator()(std::int64_t which) const { return list[which]; }
};

/// More entries than there can be.
inline constexpr std::int64_t every_entry = std::numeric_limits<std::int64_t>::max();

/// What a device knows of a selection while it is being made, so that nobody need ask the host. All zero before, and
/// after.
struct selection_record {
  std::int64_t arrived = 0; ///< teams of the running kernel
  std::int64_t count = 0;   ///< candidates that pass the first filter
  std::int64_t wanted = 0;  ///< how many of those inside the bracket belong to the k largest
  std::int64_t inside = 0;
  std::int64_t prefix = 0;     ///< the digits found, of the place in the range
  std::int64_t below_last = 0; ///< whether the place is not the last one of the range
  std::int64_t kept = 0;       ///< entries of the selection
  std::int64_t not_finite = 0; ///< `every_entry` less the least index of such an entry of the selection
};

} // namespace oktopk::detail
