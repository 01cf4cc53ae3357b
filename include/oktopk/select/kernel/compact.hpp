// SPDX-FileCopyrightText: 2026 The oktopk authors
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <oktopk/core/integers.hpp>
#include <oktopk/select/kernel/digits.hpp>
#include <oktopk/select/kernel/source.hpp>
#ifdef OKTOPK_HAS_DEVICE
#include <oktopk/select/kernel/device.hpp>
#endif

#include <algorithm>
#include <cstdint>
#include <numeric>

// Compaction where threads are few and each reads a long stretch: no scan, one pass, blocks that vectorise.
namespace oktopk::detail {

/// The candidates that a compaction writes: those of magnitudes above the threshold, and ties with it up to a position.
template <gradient_value Value>
struct magnitude_filter {
  bits_of<Value> threshold = 0;        ///< pattern of the magnitude
  std::int64_t last_tie = every_entry; ///< ties at later positions are left out

  KOKKOS_INLINE_FUNCTION bool operator()(bits_of<Value> magnitude, std::int64_t position) const {
    return magnitude > threshold || (magnitude == threshold && position <= last_tie);
  }
};

/// Number of blocks whose masks are made before the first block is read again: they are still in the first-level cache
/// then.
inline constexpr int blocks_at_once = 16;

/// The blocks of one stretch whose masks are not zero.
struct nonempty_blocks {
  std::uint64_t masks[blocks_at_once + 1]; // one more is written than is wanted
  std::int64_t begins[blocks_at_once + 1];
  int count = 0;

  // Without a branch, because it could not be predicted.
  KOKKOS_INLINE_FUNCTION void add(std::int64_t begin, std::uint64_t mask) {
    masks[count] = mask;
    begins[count] = begin;
    count += mask != 0 ? 1 : 0;
  }

  KOKKOS_INLINE_FUNCTION std::int64_t marked() const {
    std::int64_t sum = 0;
    for (int block = 0; block < count; ++block) {
      sum += popcount(masks[block]);
    }
    return sum;
  }
};

/// Loads up to `blocks_at_once` blocks from `begin` on, or the rest if that is less than one block, and marks in masks
/// the values that reach a magnitude; returns the number of masks.
template <selection_source Source>
KOKKOS_INLINE_FUNCTION int load_masks(Source const& from, std::int64_t begin, std::int64_t end,
                                      bits_of<value_of<Source>> reach, std::uint64_t* masks) {
  std::int64_t const whole = (end - begin) / mask_width;
  int const count = whole < blocks_at_once ? static_cast<int>(whole) : blocks_at_once;
  if (count == 0) {
    masks[0] = 0;
    for (std::int64_t i = begin; i < end; ++i) {
      masks[0] |= std::uint64_t(magnitude_bits(from.load(i)) >= reach ? 1 : 0) << (i - begin);
    }
    return 1;
  }
  from.load_blocks(begin, count, reach, masks);
  return count;
}

/// Writes the marked candidates that are kept, from `count` on, and returns the new count. If not all of them fit,
/// nothing is written past the room, but all are counted. The loop goes from mark to mark: no count of a block must be
/// predicted.
template <bool AllFit, selection_source Source>
KOKKOS_INLINE_FUNCTION std::int64_t
write_marked(Source const& from, magnitude_filter<value_of<Source>> kept, nonempty_blocks const& blocks,
             std::int64_t count, index_of<Source>* indices, value_of<Source>* values, std::int64_t capacity) {
  std::uint64_t left = blocks.masks[0];
  for (int block = 0; block < blocks.count;) {
    std::int64_t const i = blocks.begins[block] + lowest_bit(left);
    auto const x = from.loaded(i);
    bool const is_kept = kept(magnitude_bits(x), i);
    if (AllFit || (is_kept && count < capacity)) {
      indices[count] = from.index(i);
      values[count] = x;
    }
    count += is_kept ? 1 : 0;
    left &= left - 1;
    block += left == 0 ? 1 : 0;
    left = left == 0 ? blocks.masks[block] : left;
  }
  return count;
}

/// Loads positions [begin, end) and writes the candidates that pass to arrays with room for `capacity`; returns their
/// number, or, where that is more than the room and not all are to be counted, some number above the room.
template <selection_source Source>
KOKKOS_INLINE_FUNCTION std::int64_t compact_range(Source const& from, magnitude_filter<value_of<Source>> kept,
                                                  std::int64_t begin, std::int64_t end, index_of<Source>* indices,
                                                  value_of<Source>* values, std::int64_t capacity, bool count_all) {
  using bits = bits_of<typename Source::value_type>;
  constexpr bits largest_pattern = static_cast<bits>(~bits(0)) >> 1; // of a magnitude: a NaN
  std::int64_t count = 0;
  while (begin < end) {
    // Past the last tie that is wanted, a tie is no reason to look closer.
    bits const past_ties = begin > kept.last_tie && kept.threshold < largest_pattern ? 1 : 0;
    std::uint64_t masks[blocks_at_once];
    int const loaded = load_masks(from, begin, end, static_cast<bits>(kept.threshold + past_ties), masks);
    nonempty_blocks blocks;
    for (int block = 0; block < loaded; ++block, begin += mask_width) {
      blocks.add(begin, masks[block]);
    }
    blocks.masks[blocks.count] = 0;
    if (count > capacity && !count_all) {
      continue; // the source must still be loaded
    }
    count = count + blocks.marked() <= capacity
                ? write_marked<true>(from, kept, blocks, count, indices, values, capacity)
                : write_marked<false>(from, kept, blocks, count, indices, values, capacity);
  }
  return count;
}

/// Compacts each of `chunks` equal parts of the source into an area of its own.
template <execution_space E, selection_source Source>
void compact_chunks(E const& exec, Source const& from, magnitude_filter<value_of<Source>> kept, std::int64_t chunks,
                    std::int64_t area, index_of<Source>* indices, value_of<Source>* values, std::int64_t* counts,
                    bool count_all) {
  std::int64_t const size = from.size();
  Kokkos::parallel_for("oktopk::select::compact", index_range<E>(exec, 0, chunks), [=](std::int64_t chunk) {
    counts[chunk] =
        compact_range(from, kept, even_boundary(size, chunks, chunk), even_boundary(size, chunks, chunk + 1),
                      indices + chunk * area, values + chunk * area, area, count_all);
  });
  fence(exec, "oktopk::select::compact");
}

template <execution_space E, gradient_index Index, gradient_value Value>
void join_chunks(E const& exec, std::int64_t chunks, std::int64_t area,
                 selection_workspace<Index, Value, E> const& workspace) {
  Index const* const from_indices = workspace.chunk_indices.data();
  Value const* const from_values = workspace.chunk_values.data();
  Index* const indices = workspace.indices.data();
  Value* const values = workspace.values.data();
  std::int64_t const* const counts = workspace.chunk_counts.data();
  Kokkos::parallel_for("oktopk::select::join", index_range<E>(exec, 0, chunks), [=](std::int64_t chunk) {
    std::int64_t const to = std::accumulate(counts, counts + chunk, std::int64_t(0));
    std::copy_n(from_indices + chunk * area, counts[chunk], indices + to);
    std::copy_n(from_values + chunk * area, counts[chunk], values + to);
  });
}

/// On a CPU: one chunk a thread, each read once; and again with more room where one keeps more than its share.
template <execution_space E, selection_source Source>
std::int64_t compact_on_host(E const& exec, Source const& from, magnitude_filter<value_of<Source>> kept,
                             workspace_for<Source, E>& workspace, bool count_all) {
  constexpr std::int64_t worth_a_thread = 1 << 14;
  std::int64_t const threads = exec.concurrency();
  std::int64_t const chunks = std::max<std::int64_t>(1, std::min(threads, from.size() / worth_a_thread));
  workspace.chunk_counts.reserve(exec, chunks);
  std::int64_t const* const counts = workspace.chunk_counts.data();
  std::int64_t const capacity = workspace.indices.capacity();
  if (chunks == 1) {
    compact_chunks(exec, from, kept, 1, capacity, workspace.indices.data(), workspace.values.data(),
                   workspace.chunk_counts.data(), count_all);
    return counts[0];
  }
  auto const compact_with = [&](auto const& source, std::int64_t area, bool counts_all) {
    workspace.chunk_indices.reserve(exec, chunks * area);
    workspace.chunk_values.reserve(exec, chunks * area);
    compact_chunks(exec, source, kept, chunks, area, workspace.chunk_indices.data(), workspace.chunk_values.data(),
                   workspace.chunk_counts.data(), counts_all);
  };
  std::int64_t area = std::min(capacity, 2 * capacity / chunks + mask_width);
  compact_with(from, area, count_all || area < capacity);
  std::int64_t const count = std::accumulate(counts, counts + chunks, std::int64_t(0));
  if (count > capacity) {
    return count;
  }
  if (std::int64_t const fullest = *std::max_element(counts, counts + chunks); fullest > area) {
    area = fullest;
    compact_with(from.materialized(), area, true);
  }
  join_chunks(exec, chunks, area, workspace);
  return count;
}

/// Loads the whole source and writes the candidates that reach a magnitude, given as a pattern, to the workspace, in
/// ascending order; returns their number.
///
/// The tool of a selector that has a threshold: one read of the source. Waits for `exec`. If more candidates pass than
/// the workspace has room for, the written entries are of no use, and the result is some number above the room; with
/// `count_all` it is the right number, so that the caller can make room and compact `materialized()`.
template <execution_space E, selection_source Source>
std::int64_t compact(E const& exec, Source const& from, bits_of<value_of<Source>> threshold,
                     workspace_for<Source, E>& workspace, bool count_all = false) {
  if constexpr (is_device<E>) {
    return compact_on_device(exec, from, threshold, workspace);
  } else {
    return compact_on_host(exec, from, {threshold}, workspace, count_all);
  }
}

/// On a CPU: the position of the tie that is the `quota`-th, from 1, among the candidates of that magnitude. Reads no
/// further than this tie. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
std::int64_t position_of_tie(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                             bits_of<Value> magnitude, std::int64_t quota) {
  fence(exec, "oktopk::select::position_of_tie");
  std::int64_t position = -1;
  for (std::int64_t ties = 0; ties < quota && position + 1 < from.size();) { // damaged counts may ask for more
    position += 1;
    ties += magnitude_bits(from.values.data()[position]) == magnitude ? 1 : 0;
  }
  return position;
}

/// Writes the candidates above a threshold, and the first `ties` of those with it (or all: `every_entry`), to the
/// workspace: never more than `most`. Where more pass (the threshold was too low), keeps the first. Waits for `exec`.
template <execution_space E, gradient_index Index, gradient_value Value>
written_selection<Value> write_above_threshold(E const& exec, candidates<Index, Value, typename E::memory_space> from,
                                               bits_of<Value> threshold, std::int64_t ties, std::int64_t most,
                                               selection_workspace<Index, Value, E>& workspace) {
  std::int64_t const capacity = std::min(most, from.size());
  written_selection<Value> written;
  if constexpr (is_device<E>) {
    written = select_above_threshold_on_device(exec, from, threshold, ties, capacity, workspace);
    written.checked = true;
  } else {
    magnitude_filter<Value> passes{threshold};
    if (ties < every_entry) {
      passes.last_tie = ties == 0 ? -1 : position_of_tie(exec, from, threshold, ties);
    }
    workspace.reserve(exec, capacity);
    written.kept = compact_on_host(exec, from, passes, workspace, false);
    if (written.kept > workspace.indices.capacity()) { // the parts of several threads were not joined
      compact_chunks(exec, from, passes, 1, capacity, workspace.indices.data(), workspace.values.data(),
                     workspace.chunk_counts.data(), false);
    }
  }
  written.kept = std::min(written.kept, capacity);
  return written;
}

} // namespace oktopk::detail
