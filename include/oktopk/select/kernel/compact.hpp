// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/select/kernel/compact_on_host.hpp>
#include <oktopk/select/kernel/magnitude_filter.hpp>
#include <oktopk/select/source.hpp>
#include <oktopk/select/workspace.hpp>

#include <cstdint>

namespace oktopk {

namespace detail {

/// On a device: one scan, coalesced.
template <execution_space E, selection_source Source>
std::int64_t compact_on_device(E const& exec, Source const& from, magnitude_filter<typename Source::value_type> kept,
                               selection_workspace<typename Source::index_type, typename Source::value_type, E>& room) {
  auto* const indices = room.indices.data();
  auto* const values = room.values.data();
  std::int64_t const capacity = room.indices.capacity();
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::select::compact", detail::index_range<E>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        auto const x = from.load(i);
        if (kept(magnitude_bits(x), i)) {
          if (final && position < capacity) {
            indices[position] = from.index(i);
            values[position] = x;
          }
          position += 1;
        }
      },
      count);
  return count;
}

} // namespace detail

/// Loads the whole source and writes the candidates that pass the filter to the workspace, in ascending order; returns
/// their number.
///
/// The tool of a selector that has a threshold: one read of the source. The workspace must have been given room. Where
/// more candidates pass than there is room for, what is written is of no use, and the number is some number above the
/// room; with `count_all` it is the right one, so that the caller can make room and compact `materialized()`. Waits for
/// `exec`.
template <execution_space E, selection_source Source>
std::int64_t compact(E const& exec, Source const& from, magnitude_filter<typename Source::value_type> kept,
                     selection_workspace<typename Source::index_type, typename Source::value_type, E>& room,
                     bool count_all = false) {
  if constexpr (detail::is_device<E>) {
    return detail::compact_on_device(exec, from, kept, room);
  } else {
    return detail::compact_on_host(exec, from, kept, room, count_all);
  }
}

} // namespace oktopk
