// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/kernels.hpp>
#include <oktopk/select/source.hpp>

#include <algorithm>
#include <cstdint>

namespace oktopk::detail {

/// How many of so many values a sample has.
inline std::int64_t sample_size(std::int64_t values) {
  return std::min<std::int64_t>(values, 1 << 15);
}

template <selection_source Source>
struct sample_copying {
  Source from;
  std::int64_t stretch;
  typename Source::value_type* out;

  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i) const {
    std::uint64_t h = (static_cast<std::uint64_t>(i) + 1) * 0x9e3779b97f4a7c15U;
    h = (h ^ (h >> 31)) * 0xbf58476d1ce4e5b9U;
    out[i] = from.peek(i * stretch + static_cast<std::int64_t>((h >> 33) % static_cast<std::uint64_t>(stretch)));
  }
};

/// Copies evenly spread values, each from a place of its own stretch that a hash picks, so that no period is in step.
/// The same values give the same sample. Does not load them.
template <execution_space E, selection_source Source>
void copy_sample(E const& exec, Source const& from, std::int64_t samples, typename Source::value_type* out) {
  Kokkos::parallel_for("oktopk::select::sample", index_range<E>(exec, 0, samples),
                       sample_copying<Source>{from, from.size() / samples, out});
}

} // namespace oktopk::detail
