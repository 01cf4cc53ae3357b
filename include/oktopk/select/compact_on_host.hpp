// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/detail/kokkos_ext/fence.hpp>
#include <oktopk/select/concept.hpp>
#include <oktopk/select/keep.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>

// Compaction where threads are few and each reads a long stretch: no scan, one pass, blocks that vectorise.
namespace oktopk::detail {

/// Candidates that a CPU looks at together: enough to pay for the test, few enough that most blocks hold none.
inline constexpr int block_width = 32;

/// Takes positions [begin, end) and writes what is kept to arrays with room for `room`; gives the number kept, or,
/// where that is more than the room and nobody asked to count on, some number above the room. One comparison a block
/// where nothing is kept, and no branch an entry where something is.
template <selection_source Source>
KOKKOS_INLINE_FUNCTION std::int64_t
compact_range(Source const& from, keep<typename Source::value_type> kept, std::int64_t begin, std::int64_t end,
              typename Source::index_type* indices, typename Source::value_type* values, std::int64_t room,
              bool count_on) {
  std::int64_t count = 0;
  std::int64_t i = begin;
  for (; i + block_width <= end; i += block_width) {
    // Past the last tie that is wanted, a tie is no reason to look closer.
    auto const reach =
        i > kept.last_tie ? static_cast<bits_of<typename Source::value_type>>(kept.threshold + 1) : kept.threshold;
    if (from.template take_block<block_width>(i) < reach || (count > room && !count_on)) {
      continue;
    }
    bool const fits = count + block_width <= room;
    for (std::int64_t j = i; j < i + block_width; ++j) {
      auto const x = from.taken(j);
      bool const keeps = kept(magnitude_bits(x), j);
      if (fits || (keeps && count < room)) {
        indices[count] = from.index(j);
        values[count] = x;
      }
      count += keeps ? 1 : 0;
    }
  }
  for (; i < end; ++i) {
    auto const x = from.take(i);
    if (kept(magnitude_bits(x), i)) {
      if (count < room) {
        indices[count] = from.index(i);
        values[count] = x;
      }
      count += 1;
    }
  }
  return count;
}

/// Compacts each of `chunks` equal parts of the source into an area of its own.
template <execution_space E, selection_source Source>
void compact_chunks(E const& exec, Source const& from, keep<typename Source::value_type> kept, std::int64_t chunks,
                    std::int64_t area, typename Source::index_type* indices, typename Source::value_type* values,
                    std::int64_t* counts, bool count_on) {
  std::int64_t const size = from.size();
  Kokkos::parallel_for(
      "oktopk::select::compact", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, chunks),
      KOKKOS_LAMBDA(std::int64_t chunk) {
        std::int64_t const begin = size / chunks * chunk + (chunk < size % chunks ? chunk : size % chunks);
        std::int64_t const end = begin + size / chunks + (chunk < size % chunks ? 1 : 0);
        counts[chunk] =
            compact_range(from, kept, begin, end, indices + chunk * area, values + chunk * area, area, count_on);
      });
  fence(exec, "oktopk::select::compact");
}

/// Joins the areas.
template <execution_space E, gradient_index Index, gradient_value Value>
void join_chunks(E const& exec, std::int64_t chunks, std::int64_t area,
                 selection_workspace<Index, Value, E> const& room) {
  Index const* const from_indices = room.chunk_indices.data();
  Value const* const from_values = room.chunk_values.data();
  Index* const indices = room.indices.data();
  Value* const values = room.values.data();
  std::int64_t const* const counts = room.chunk_counts.data();
  Kokkos::parallel_for(
      "oktopk::select::join", Kokkos::RangePolicy<E, Kokkos::IndexType<std::int64_t>>(exec, 0, chunks),
      KOKKOS_LAMBDA(std::int64_t chunk) {
        std::int64_t to = 0;
        for (std::int64_t before = 0; before < chunk; ++before) {
          to += counts[before];
        }
        for (std::int64_t i = 0; i < counts[chunk]; ++i) {
          indices[to + i] = from_indices[chunk * area + i];
          values[to + i] = from_values[chunk * area + i];
        }
      });
}

/// On a CPU: one contiguous chunk a thread, each read once; a chunk that has more than its share of what is kept is
/// read again with more room.
template <execution_space E, selection_source Source>
std::int64_t compact_on_host(E const& exec, Source const& from, keep<typename Source::value_type> kept,
                             selection_workspace<typename Source::index_type, typename Source::value_type, E>& room,
                             bool count_on) {
  constexpr std::int64_t worth_a_thread = 1 << 14;
  std::int64_t const threads = exec.concurrency();
  std::int64_t const chunks = std::max<std::int64_t>(1, std::min(threads, from.size() / worth_a_thread));
  room.chunk_counts.reserve(exec, chunks);
  std::int64_t const* const counts = room.chunk_counts.data();
  std::int64_t const capacity = room.indices.capacity();
  if (chunks == 1) {
    compact_chunks(exec, from, kept, 1, capacity, room.indices.data(), room.values.data(), room.chunk_counts.data(),
                   count_on);
    return counts[0];
  }
  std::int64_t area = std::min(capacity, 2 * capacity / chunks + block_width);
  room.chunk_indices.reserve(exec, chunks * area);
  room.chunk_values.reserve(exec, chunks * area);
  compact_chunks(exec, from, kept, chunks, area, room.chunk_indices.data(), room.chunk_values.data(),
                 room.chunk_counts.data(), count_on || area < capacity);
  std::int64_t const count = std::accumulate(counts, counts + chunks, std::int64_t(0));
  std::int64_t const fullest = *std::max_element(counts, counts + chunks);
  if (count > capacity) {
    return count;
  }
  if (fullest > area) {
    area = fullest;
    room.chunk_indices.reserve(exec, chunks * area);
    room.chunk_values.reserve(exec, chunks * area);
    compact_chunks(exec, from.settled(), kept, chunks, area, room.chunk_indices.data(), room.chunk_values.data(),
                   room.chunk_counts.data(), true);
  }
  join_chunks(exec, chunks, area, room);
  return count;
}

} // namespace oktopk::detail
