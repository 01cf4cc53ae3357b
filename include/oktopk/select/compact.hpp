// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/core/kokkos_ext/range.hpp>
#include <oktopk/select/compact_on_host.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/keep.hpp>

#include <cstdint>

namespace oktopk {

namespace detail {

/// On a device: one scan, coalesced.
template <execution_space E, selection_source Source>
std::int64_t compact_on_device(E const& exec, Source const& from, keep<typename Source::value_type> kept,
                               selection_workspace<typename Source::index_type, typename Source::value_type, E>& room) {
  auto* const indices = room.indices.data();
  auto* const values = room.values.data();
  std::int64_t const capacity = room.indices.capacity();
  std::int64_t count = 0;
  Kokkos::parallel_scan(
      "oktopk::select::compact", detail::index_range<E>(exec, 0, from.size()),
      KOKKOS_LAMBDA(std::int64_t i, std::int64_t & position, bool final) {
        auto const x = from.take(i);
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

/// Takes the whole source, writes the kept candidates into the workspace in ascending order and gives their number.
///
/// Where they are more than the workspace has room for, what is written is of no use, and the number is right
/// only if the caller asks to `count_on`, so as to make room and compact `settled()`. Waits for `exec`.
template <execution_space E, selection_source Source>
std::int64_t compact(E const& exec, Source const& from, keep<typename Source::value_type> kept,
                     selection_workspace<typename Source::index_type, typename Source::value_type, E>& room,
                     bool count_on = false) {
  if constexpr (detail::is_device<E>) {
    return detail::compact_on_device(exec, from, kept, room);
  } else {
    return detail::compact_on_host(exec, from, kept, room, count_on);
  }
}

} // namespace oktopk
