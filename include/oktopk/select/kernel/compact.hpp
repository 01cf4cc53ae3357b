// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/kokkos_ext/memory.hpp>
#include <oktopk/select/kernel/compact_on_host.hpp>
#include <oktopk/select/kernel/device/gather.hpp>
#include <oktopk/select/kernel/device/write.hpp>
#include <oktopk/select/kernel/magnitude_filter.hpp>
#include <oktopk/select/source.hpp>
#include <oktopk/select/workspace.hpp>

#include <cstdint>

namespace oktopk {

namespace detail {

/// On a device: one pass over the source, and another over what passes, which brings it in order.
template <class Warp, execution_space E, selection_source Source>
std::int64_t compact_by_teams(E const& exec, Source const& from, magnitude_filter<typename Source::value_type> kept,
                              selection_workspace<typename Source::index_type, typename Source::value_type, E>& room) {
  using value_type = typename Source::value_type;
  if (from.size() == 0) {
    return 0;
  }
  std::int64_t const capacity = room.indices.capacity();
  std::int64_t const tiles = tiles_of<Warp, value_type>(from.size());
  auto& device = room.on_device;
  device.reserve(exec, tiles);
  room.chunk_indices.reserve(exec, capacity);
  room.chunk_values.reserve(exec, capacity);
  selection_record* const record = device.record.data();
  gather_on_device<Warp>(
      exec, from, kept,
      gathered_candidates<typename Source::index_type, value_type>{room.chunk_indices.data(), room.chunk_values.data(),
                                                                   capacity, device.pieces.data(), record},
      place_tiles{tiles, device.pieces.data(), device.numbers.data()});
  candidates<typename Source::index_type, value_type, typename E::memory_space> const gathered(
      sparse_ref<typename Source::index_type, value_type, typename E::memory_space>(
          room.chunk_indices.data(), room.chunk_values.data(), capacity));
  write_kept<Warp>(exec, listed_pieces{device.pieces.data(), tiles}, gathered, all_gathered<value_type>{capacity},
                   device.numbers.data(), room.indices.data(), room.values.data(), capacity, record,
                   device.told.device().data());
  device.told.to_host(exec, 1, "oktopk::select::compact");
  return device.told.host()->count;
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
    return detail::compact_by_teams<detail::warp_of<E>>(exec, from, kept, room);
  } else {
    return detail::compact_on_host(exec, from, kept, room, count_all);
  }
}

} // namespace oktopk
